#!/bin/sh
# Prints the first process of a container, by the number that this machine gives it. Exit code 1 if it is not here.
# $1: the number (ID) of the container, which is in the name of its control group.
# shellcheck disable=SC2013  # these paths have no spaces
for each in $(grep -ls -- "$1" /proc/[0-9]*/cgroup); do
    process=${each%/cgroup}
    # The last number is that in the process namespace of the container.
    if [ "$(sed -n 's/^NSpid:.*[[:space:]]//p' "$process/status" 2>/dev/null)" = 1 ]; then
        echo "${process#/proc/}"
        exit 0
    fi
done
exit 1
