//go:build tools

// The CNI plug-in that gives pods further interfaces in the cluster of `podperf cluster up --multus`.
package multus

import _ "gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/multus"
