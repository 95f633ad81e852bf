#!/bin/sh
# Prints the first process of a container, by the number that this machine gives it. Exit code 1 if it is not here.
# $1: the number (ID) of the container; $2: that of its pod (UID). Both are in the path of its control group. The driver
# of control groups writes - or _ in the number of the pod.
other=$(echo "$2" | tr - _)
# shellcheck disable=SC2013  # these paths have no spaces
for each in $(grep -lsF -- "$1" /proc/[0-9]*/cgroup); do
    process=${each%/cgroup}
    grep -sF -- "$1" "$each" | grep -qF -e "pod$2" -e "pod$other" || continue
    # The last number is that in the process namespace of the container. A process of the machine's has no further one.
    if [ "$(sed -n 's/^NSpid:[[:space:]]*[0-9].*[[:space:]]//p' "$process/status" 2>/dev/null)" = 1 ]; then
        echo "${process#/proc/}"
        exit 0
    fi
done
exit 1
