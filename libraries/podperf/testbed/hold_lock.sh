#!/bin/sh
# Arguments: the file of the lock, seconds of silence, and what the lock is for. Says who
# has the lock. Ends when it has read nothing for so many seconds.
echo "$PPID $3" >"$1"
echo locked
while timeout --foreground "$2" sh -c 'read -r _'; do :; done
