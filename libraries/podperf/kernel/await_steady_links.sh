#!/bin/sh
# Arguments: seconds, and interfaces. Waits until all links stay up for that long.
stays=$1
shift
down() {
    for i; do
        ip link show dev "$i" | grep -q LOWER_UP || return 0
    done
    return 1
}
seconds() {
    # shellcheck disable=SC2034 # `rest` takes the idle time
    read -r now rest </proc/uptime
    now=${now%.*}
}
seconds
since=$now
until [ $((now - since)) -gt "$stays" ]; do
    sleep 0.1
    seconds
    ! down "$@" || since=$now
done
