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
chmod 755 / # DPDK loads no drivers below a folder that everybody can write
echo 0 >/proc/sys/kernel/printk
ip link set dev lo up
# Where a softirq is left to this thread (before Linux 6.5), it works before the sender goes on.
chrt --fifo --pid 1 "$(pgrep -x ksoftirqd/0)" || say "the softirq thread has no precedence"
# The table of neighbours has 8 buckets, in which two entries often collide, and each frame costs more. It grows with its
# entries, and never shrinks.
ip link add grow0 type veth peer name grow1
for entry in $(seq 0 1023); do
    echo "neigh add 10.99.$((entry / 256)).$((entry % 256)) lladdr 02:00:00:00:00:01 dev grow0 nud permanent"
done | ip -force -batch - || say "the table of neighbours stays small"
ip link del grow0
# A kernel may have them built in, and then it has no modules.
modprobe --all --quiet virtio_pci virtio_console
port=$(grep -lx podperf-ssh /sys/class/virtio-ports/*/name 2>/dev/null) || {
    there=$(find /usr/lib/modules -maxdepth 1 -mindepth 1 -printf '%f ' 2>/dev/null)
    say "the kernel $(uname -r) has no serial port of virtio, built in or as modules (modules here: ${there:-none})"
    echo o >/proc/sysrq-trigger
    sleep 10
}
port=/dev/$(basename "${port%/name}")
say ready
# Each connection to the serial port starts a new SSH server.
while :; do
    /usr/sbin/sshd -i -E /run/sshd.log <>"$port" >&0
    sleep 0.2
done
