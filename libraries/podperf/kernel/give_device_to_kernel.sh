#!/bin/sh -e
# Argument: a PCI address. Starts the kernel's driver for the device anew, and prints the interface that it makes.
device=/sys/bus/pci/devices/$1
echo >"$device/driver_override"
[ ! -e "$device/driver" ] || echo "$1" >"$device/driver/unbind"
modprobe -- "$(cat "$device/modalias")" || :
echo "$1" >/sys/bus/pci/drivers_probe
[ -e "$device/driver" ] || {
    echo "the kernel has no driver for it" >&2
    exit 1
}
# The driver makes the interface, and udev gives it its final name.
until interface=$(ls "$device/net" 2>/dev/null) && [ -n "$interface" ]; do sleep 0.05; done
! command -v udevadm >/dev/null || udevadm settle --timeout=5 || :
# shellcheck disable=SC2012 # the kernel's names of interfaces
interface=$(ls "$device/net" | head -n 1)
echo "$interface"
