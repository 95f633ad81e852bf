//go:build tools

// The CNI plug-in of `podperf cluster up --network flannel`, from the last version of these plug-ins that has it.
package flannel_cni

import _ "github.com/containernetworking/plugins/plugins/meta/flannel"
