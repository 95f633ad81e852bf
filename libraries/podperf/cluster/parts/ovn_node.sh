#!/bin/bash
# Runs Open vSwitch and OVN on a node. Ends when one of their daemons ends.
# $1: the root of their packages; $2: the folder with the files of this node (ovn.py); $3 and $4: the address and the TCP
# port of OVN's databases. The node whose folder has a logical network also has the databases.
set -euo pipefail
root=$1 files=$2 databases=tcp:$3:$4 passive=ptcp:$4:$3
export PATH=$root/usr/bin:$root/usr/sbin:$PATH OVS_RUNDIR=/run/openvswitch OVN_RUNDIR=/run/ovn
mkdir -p "$OVS_RUNDIR" "$OVN_RUNDIR"

# The log of a daemon is what it says on the console, and never goes to the machine's.
run() {
    "$@" -vsyslog:off -vconsole:info &
}

# Runs the server of these databases (files, each with its schema before it) at $1, and waits until it serves.
# $2: its name.
serve() {
    local remote=$1 control=$OVS_RUNDIR/$2.ctl served=()
    shift 2
    while [ $# -gt 0 ]; do
        ovsdb-tool create "$2" "$root/usr/share/$1"
        served+=("$2")
        shift 2
    done
    run ovsdb-server --remote="$remote" --unixctl="$control" "${served[@]}"
    until ovs-appctl --target="$control" version >/dev/null 2>&1; do
        kill -0 $! # otherwise it has ended
        sleep 0.05
    done
}

if [ -e "$files/logical" ]; then
    serve "$passive" central ovn/ovn-nb.ovsschema "$files/nb.db" ovn/ovn-sb.ovsschema "$files/sb.db"
    run ovn-northd --ovnnb-db="$databases" --ovnsb-db="$databases"
    xargs --delimiter='\n' --arg-file="$files/logical" ovn-nbctl --db="$databases"
fi
own=unix:$OVS_RUNDIR/db.sock
serve "p$own" ovsdb openvswitch/vswitch.ovsschema "$files/conf.db"
ovs-vsctl --no-wait init
# Open vSwitch of this node never looks for a module in the kernel.
run ovs-vswitchd --disable-system "$own"
xargs --delimiter='\n' --arg-file="$files/switch" ovs-vsctl
ip -batch "$files/addresses"
nft --file "$files/translation"
# ovn-controller 23.03 seldom crashes at its start (SIGSEGV); the cause is not known. So the database that it reads is
# complete, and --monitor starts it again after a crash, as in Debian's service.
until [ "$(ovn-sbctl --db="$databases" --bare --columns=_uuid list Port_Binding 2>/dev/null)" ]; do
    sleep 0.1
done
run ovn-controller --monitor "$own"
wait -n
