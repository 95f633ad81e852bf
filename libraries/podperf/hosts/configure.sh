#!/bin/sh
# Arguments: kernel parameters, as net/ipv4/ip_forward=1. Sets those that the kernel has. Then makes the changes on
# standard input, with one call of ip.
for each; do
    file=/proc/sys/${each%%=*}
    [ ! -e "$file" ] || echo "${each#*=}" >"$file" || exit
done
exec ip -batch -
