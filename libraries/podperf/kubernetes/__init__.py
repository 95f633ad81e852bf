"""Measures in a Kubernetes cluster that exists: its API, the objects of a run, the pods of the tester and of chains."""
