#!/bin/sh -e
# Bridges of this network, to tables in which hardly any address of the chain stands behind another one.
#
# A bridge's table of addresses starts with 64 buckets and shrinks to four for a few addresses (Linux,
# net/bridge/br_fdb.c: br_fdb_rht_params; lib/rhashtable.c). With 390 addresses more it has 1024 buckets. The kernel puts
# a new address before those that its bucket has. So the addresses of the chain are taken out and come in again: the
# bridge's own one here, and those that it has learnt with the next frames.
ip -oneline link show type bridge | sed -n 's/^[0-9]*: \([^:@]*\)[:@].* link\/ether \([0-9a-f:]*\) .*/\1 \2/p' |
while read -r name own; do
    for number in $(seq 390); do
        printf 'fdb replace 02:00:5e:00:%02x:%02x dev %s self permanent\n' $((number / 256)) $((number % 256)) "$name"
    done | bridge -batch -
    # A bridge that has the address of a port has no entry of its own, and no frame of the chain is for the bridge.
    if bridge fdb del "$own" dev "$name" self 2>/dev/null; then
        bridge fdb add "$own" dev "$name" self permanent
    fi
    ip link set "$name" type bridge fdb_flush
done
