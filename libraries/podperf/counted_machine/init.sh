#!/bin/sh
# The first process of the counted machine.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=linux
say() { echo "podperf counted machine: $1" >/dev/console; }
mounted() { mkdir -p "$2" && mount -t "$1" "$1" "$2"; }

mounted proc /proc
mounted sysfs /sys
mounted devtmpfs /dev
mounted devpts /dev/pts
mounted tmpfs /dev/shm
mounted tmpfs /run
mounted cgroup2 /sys/fs/cgroup
mounted bpf /sys/fs/bpf
mkdir -p /run/sshd /run/lock /run/netns
hostname podperf-counted
echo 0 >/proc/sys/kernel/printk
ip link set dev lo up
modprobe --all virtio_pci virtio_console || say "the kernel has no serial port of virtio"
port=$(grep -lx podperf-ssh /sys/class/virtio-ports/*/name) && port=/dev/$(basename "${port%/name}")
say ready
# Each connection to the serial port starts a new SSH server.
while :; do
    /usr/sbin/sshd -i -E /run/sshd.log <>"$port" >&0
    sleep 0.2
done
