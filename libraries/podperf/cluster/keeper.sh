#!/bin/sh
# Runs a command, which is the cluster, and removes the control groups of the cluster when it has ended, for whatever
# reason. $1: file with the groups, one a line; further arguments: the command.
export KEEPER=$$ # a process of the machine, outside of the cluster's namespaces
groups=$1
shift
status=0
"$@" || status=$?
while read -r group; do
    find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
done <"$groups"
exit "$status"
