*** Settings ***
Documentation    The network of a Kubernetes cluster. The API server must be ready before any test starts a pod.

Library          RequestsLibrary
Library          ../../libraries/Testbed.py
Library          ../../libraries/Cluster.py

Suite Setup      API Server Should Be Ready
