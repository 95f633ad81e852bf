#!/bin/sh
# CNI plug-in `podperf-in-network`: calls another CNI plug-in in a network namespace of a run of podperf on this machine,
# where the run has its ports. The configuration has the name of the plug-in (`podperfPlugin`) and of the namespace
# (`podperfNetwork`). Only namespaces of podperf are entered. Their names begin with `podperf-`.
set -eu
fail() {
    echo "{\"cniVersion\": \"1.0.0\", \"code\": 7, \"msg\": \"podperf-in-network: $1\"}"
    exit 1
}
if [ "$CNI_COMMAND" = VERSION ]; then
    echo '{"cniVersion": "1.0.0", "supportedVersions": ["0.3.0", "0.3.1", "0.4.0", "1.0.0"]}'
    exit 0
fi
configuration=$(tr '\n' ' ')
key() {
    echo "$configuration" | sed -n "s/.*\"$1\": *\"\($2[a-zA-Z0-9-]*\)\".*/\1/p"
}
plugin=$(key podperfPlugin '[a-z]')
namespace=$(key podperfNetwork podperf-)
[ "$plugin" ] || fail 'podperfPlugin names no plug-in'
[ "$namespace" ] || fail 'podperfNetwork names no namespace of podperf'
# Process 1 may have other mounts than the program that calls this plug-in. A node that is a part of a machine (`podperf
# cluster up --multus`) has the machine's namespaces at the second path.
for network in "/proc/1/root/run/netns/$namespace" "/run/netns-of-machine/$namespace"; do
    if [ -e "$network" ]; then
        exec nsenter --net="$network" -- "${0%/*}/$plugin" <<EOF
$(echo "$configuration" | sed "s/\"podperf-in-network\"/\"$plugin\"/")
EOF
    fi
done
[ "$CNI_COMMAND" != DEL ] || exit 0 # the interfaces are gone with the namespace
fail "this machine has no network namespace $namespace"
