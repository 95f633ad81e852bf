#!/bin/sh
# Arguments: folders of control groups. Ends the processes of each group, and removes it when they are gone.
for group; do
    while [ -d "$group" ] && ! rmdir "$group" 2>/dev/null; do
        while read -r process; do
            kill -KILL "$process" 2>/dev/null
        done <"$group/cgroup.procs"
        sleep 0.02
    done
done
