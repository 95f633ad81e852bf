#!/bin/sh
# Arguments: kernel parameters, as net/ipv4/ip_forward=1, and then a command. Sets those that the kernel has. Then runs
# the command, which reads the changes on standard input.
while case $1 in *=*) ;; *) false ;; esac; do
    file=/proc/sys/${1%%=*}
    [ ! -e "$file" ] || echo "${1#*=}" >"$file" || exit
    shift
done
exec "$@"
