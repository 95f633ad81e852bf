"""A Kubernetes cluster that exists: its API, the namespace of a run, and the pods in it."""
