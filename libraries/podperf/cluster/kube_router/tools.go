//go:build tools

// The program that enforces NetworkPolicies in the cluster of `podperf cluster up --network-policies`.
package kube_router

import _ "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"
