//go:build tools

// The agent of `podperf cluster up --network flannel`. The modules of its backend tencent-vpc are not on Go's module
// proxy. The folders common and vpc stand in for them, so that backend does not work.
package flannel

import _ "github.com/flannel-io/flannel"
