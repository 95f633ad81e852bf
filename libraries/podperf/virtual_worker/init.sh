#!/bin/sh
# The first process of the virtual worker: no systemd, no udev, because the machine lives for one run only.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=linux
say() { echo "podperf virtual worker: $1" >/dev/console; }
mounted() { mountpoint --quiet "$1" || { mkdir -p "$1" && mount -t "$2" "$2" "$1" ${3:+-o "$3"}; }; }

mounted /proc proc
mounted /sys sysfs
mounted /dev devtmpfs
say started
mounted /dev/pts devpts mode=620,ptmxmode=666
mounted /dev/shm tmpfs
mounted /run tmpfs mode=755
mounted /sys/fs/cgroup cgroup2
mounted /sys/fs/bpf bpf
mounted /dev/hugepages hugetlbfs
mkdir -p /run/sshd /run/lock /run/netns
hostname podperf-worker

# Without udev, nothing loads a driver when a device appears. So drivers of virtual functions are loaded now.
for module in virtio_net virtio_rng igb igbvf vfio_pci openvswitch ipvlan macvlan 8021q ipip vxlan tun veth bridge; do
    modprobe "$module" || say "the kernel has no module $module"
done

# Ports get the names that udev would give them on a server, by their place on the PCI bus.
for link in /sys/class/net/*; do
    name=${link##*/}
    case $(basename "$(readlink "$link/device/driver")") in
        igb)
            address=$(basename "$(readlink "$link/device")")
            bus=${address#*:}
            ip link set dev "$name" name "enp$((0x${bus%%:*}))s0"
            ;;
        virtio_net)
            ip address add 10.0.2.15/24 dev "$name"
            ip link set dev "$name" up
            ;;
    esac
done
ip link set dev lo up

/usr/sbin/sshd -E /run/sshd.log || say "sshd did not start: $(tail -n 1 /run/sshd.log)"
# sshd goes into the background before it listens. It writes its PID file when it listens.
until [ -s /run/sshd.pid ]; do sleep 0.1; done
say ready
exec tini -- sleep infinity
