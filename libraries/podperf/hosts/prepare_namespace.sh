#!/bin/sh
# Arguments: kernel parameters, as NAME=VALUE. Sets them in its network namespace, and brings the loopback up. Parameters
# that the kernel lacks are left out.
ip link set dev lo up && exec sysctl -eqw "$@"
