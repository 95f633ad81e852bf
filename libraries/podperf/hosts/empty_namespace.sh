#!/bin/sh
# Argument: a network namespace. Ends its processes, and deletes its veth pairs. Exit code 1 if there is no such namespace.
[ -e "/run/netns/$1" ] || exit 1
for process in $(ip netns pids "$1"); do kill -KILL "$process" 2>/dev/null; done
# Both ends of a pair are deleted together. The other end may be in the list, too; its deletion then fails, and this does
# no harm.
ip -n "$1" -brief link show type veth | while read -r end rest; do
    ip -n "$1" link del dev "${end%%@*}" 2>/dev/null
done
:
