#!/bin/sh
# Arguments: names of SSH connections (values of SSH_CONNECTION). Ends all processes that were started by them.
for name; do
    for each in /proc/[0-9]*; do
        tr '\0' '\n' <"$each/environ" 2>/dev/null | grep -qxF "SSH_CONNECTION=$name" && kill -KILL "${each#/proc/}"
    done
done
:
