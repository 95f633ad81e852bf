#!/bin/sh
# Arguments: folder and file of the lock, seconds of silence, the text of hold_lock.sh, the purpose of the lock, and the
# exit code if another process has the lock. flock(1) has the lock for as long as hold_lock.sh runs. The program
# `timeout` in hold_lock.sh does not inherit the lock, because it may live on for a moment.
# shellcheck disable=SC2174 # the folder above is there: /run
mkdir -p -m 700 "$1" && chmod 700 "$1" || exit
umask 077
exec flock --nonblock --close --conflict-exit-code "$6" "$2" \
    setpriv --pdeathsig KILL -- sh -c "$4" sh "$2" "$3" "$5"
