#!/bin/sh -e
# Arguments: the run directory, a folder in it, and the command line of a daemon of Docker or Podman. Called in a mount
# namespace of its own. The daemon and its helpers write into /etc, /opt, /run and /dev/shm, and read the machine's
# configuration and programs there. So they get others, in which the run directory and what is in /opt are the machine's.
run=$1
folder=$2
shift 2
mkdir "$folder/mount"
mount --no-mtab -t tmpfs tmpfs "$folder/mount"
cp --archive /etc/. "$folder/mount"
rm -rf "$folder/mount/docker"
mount --no-mtab --move "$folder/mount" /etc
mount --no-mtab -t tmpfs tmpfs "$folder/mount"
for each in /opt/*; do
    there=$folder/mount/${each#/opt/}
    if [ "$each" != /opt/containerd ] && [ -d "$each" ]; then
        mkdir "$there"
        mount --no-mtab --rbind "$each" "$there"
    fi
done
mount --no-mtab --move "$folder/mount" /opt
mount --no-mtab -t tmpfs tmpfs /dev/shm
mount --no-mtab -t tmpfs tmpfs "$folder/mount"
mkdir -p "$folder/mount/${run#/run/}"
mount --no-mtab --bind "$run" "$folder/mount/${run#/run/}"
mount --no-mtab --move "$folder/mount" /run
exec "$@"
