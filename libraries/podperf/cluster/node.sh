#!/bin/sh
# First process of a node, in a network namespace, with namespaces of its own for mounts, host name, IPC and control
# groups: makes the node look like a machine, and becomes the command.
# $1: name of the node; $2: folder of the cluster; $3: podperf's run directory of the machine, as the cluster sees it;
# $4: the path of the run directory on the node; further arguments: the command, which is containerd.
set -eu
name=$1 folder=$2 run_directory=$3 path=$4
shift 4
hostname "$name"
# Cilium's agent refuses a second file system of BPF beside the machine's. `lazy` takes all mounts below /sys along, and
# also works while one of them is busy.
umount --lazy /sys
mount -t sysfs sysfs /sys
# The hierarchies of control groups, as seen from the node: its own group is the root of each.
if ! grep -q '[:,]cpuset[:,]' /proc/self/cgroup; then
    mount -t cgroup2 groups /sys/fs/cgroup
    # A group with processes of its own gives no controllers to those below it.
    mkdir /sys/fs/cgroup/programs
    echo 0 >/sys/fs/cgroup/programs/cgroup.procs
    sed 's/[a-z]*/+&/g' /sys/fs/cgroup/cgroup.controllers >/sys/fs/cgroup/cgroup.subtree_control
else
    mount -t tmpfs -o mode=755 groups /sys/fs/cgroup
fi
while IFS=: read -r _ controllers _; do
    case $controllers in
        '') continue ;; # that of version 2, which has no controllers if those of version 1 have them
        name=*) at=/sys/fs/cgroup/${controllers#name=} options=none,$controllers ;;
        *) at=/sys/fs/cgroup/$controllers options=$controllers ;;
    esac
    mkdir "$at"
    mount -t cgroup -o "$options" groups "$at"
    for each in $(echo "$controllers" | tr , ' '); do
        [ -e "/sys/fs/cgroup/$each" ] || [ "$at" = "/sys/fs/cgroup/${each#name=}" ] || ln -s "$at" "/sys/fs/cgroup/$each"
    done
done </proc/self/cgroup
# Folders in which programs of a node write. The folder of the cluster stays where it is, also below /var/lib.
mount -t tmpfs -o mode=755 run /run
mkdir /run/cluster /run/netns
ln -s "$folder/machine/run/netns" /run/netns-of-machine # for the CNI plug-in podperf-in-network
ln -s "$run_directory" "$path" # it comes and goes with chains
mount --rbind "$folder" /run/cluster
mount -t tmpfs -o mode=755 lib /var/lib
mkdir -p "$folder" /var/lib/kubelet
mount --move /run/cluster "$folder"
mkdir -p "$folder/$name/log" "$folder/$name/settings" "$folder/$name/tmp"
mount --bind "$folder/$name/log" /var/log
# A kubelet writes these settings of the kernel, and Cilium's agent the last two. Here they are files of the node, and
# the kernel keeps its own.
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000 \
    kernel/unprivileged_bpf_disabled=1 kernel/timer_migration=0; do
    path=${setting%=*}
    [ -e "/proc/sys/$path" ] || continue
    file=$folder/$name/settings/$(echo "$path" | tr / _)
    echo "${setting#*=}" >"$file"
    mount --bind "$file" "/proc/sys/$path"
done
mount --make-rshared /
export TMPDIR="$folder/$name/tmp"
exec "$@"
