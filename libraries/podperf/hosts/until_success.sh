#!/bin/sh
# Arguments: a process, and a command. Repeats the command until it succeeds. Fails if the process is gone or a zombie.
p=$1
shift
until "$@" >/dev/null 2>&1; do
    read -r s <"/proc/$p/stat" || exit 1
    case "${s##*) }" in Z*) exit 1 ;; esac
    sleep 0.02
done
