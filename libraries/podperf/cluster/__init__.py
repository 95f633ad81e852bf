"""podperf's own Kubernetes cluster on this machine, in namespaces of its own."""
