#!/bin/sh
# Arguments: a process, a signal or nothing, and a number of looks. Sends the signal, and looks each 0.05 s if the process
# has ended. Prints `alive` if it has not. A zombie has ended.
alive() {
    { read -r s <"/proc/$1/stat"; } 2>/dev/null || return 1
    case "${s##*) }" in Z*) return 1 ;; esac
}
i=$3
if alive "$1"; then
    [ -z "$2" ] || kill -s "$2" "$1"
    while [ "$i" -gt 0 ] && alive "$1"; do
        sleep 0.05
        i=$((i - 1))
    done
fi
! alive "$1" || echo alive
