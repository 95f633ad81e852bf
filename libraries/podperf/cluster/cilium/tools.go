//go:build tools

// The agent and the CNI plug-in of the cluster of `podperf cluster up --network cilium`.
package cilium

import (
	_ "github.com/cilium/cilium/daemon"
	_ "github.com/cilium/cilium/plugins/cilium-cni"
)
