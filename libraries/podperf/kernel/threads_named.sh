#!/bin/sh
# Arguments: a prefix, and a folder of /proc. Prints the numbers of the threads there whose name starts with the prefix.
# Any user can give any name to a process. So if the folder is /proc itself, only threads of the kernel count. They have
# the flag PF_KTHREAD (0x00200000, linux/sched.h) in /proc/PID/stat (proc(5)), which no process can give itself.
for t in "$2"/[0-9]*; do
    read -r n 2>/dev/null <"$t/comm" || continue
    case "$n" in "$1"*) ;; *) continue ;; esac
    if [ "$2" = /proc ]; then
        read -r s 2>/dev/null <"$t/stat" || continue
        # shellcheck disable=SC2086 # the fields behind the name; the flags are the seventh of them
        set -- "$1" "$2" ${s##*) }
        [ $((${9:-0} & 0x200000)) != 0 ] || continue
    fi
    echo "${t##*/}"
done
:
