//go:build tools

// The program that connects pods by BGP (`podperf cluster up --network kube-router`), or that enforces NetworkPolicies
// (`--network-policies`).
package kube_router

import _ "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"
