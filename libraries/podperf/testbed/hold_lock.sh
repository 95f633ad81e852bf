#!/bin/sh
# Arguments: the file of the lock, seconds of silence, and the purpose of the lock. Writes the
# process that has the lock into the file. Ends if it reads nothing for these seconds of silence.
echo "$PPID $3" >"$1"
echo locked
while timeout --foreground "$2" sh -c 'read -r _'; do :; done
