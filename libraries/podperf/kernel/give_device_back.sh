#!/bin/sh -e
# Arguments: a PCI address, and the old `driver_override`, driver and interface of the device. Each may be empty. If the
# interface moved to another network namespace, or has another name, the driver makes the interface anew.
device=/sys/bus/pci/devices/$1
driver() { [ ! -e "$device/driver" ] || basename "$(readlink "$device/driver")"; }
echo "$2" >"$device/driver_override"
if [ "$(driver)" != "$3" ] || { [ -n "$4" ] && [ ! -e "$device/net/$4" ]; }; then
    [ ! -e "$device/driver" ] || echo "$1" >"$device/driver/unbind"
    [ -z "$3" ] || echo "$1" >"/sys/bus/pci/drivers/$3/bind"
fi
[ -n "$4" ] || exit 0
# The driver makes the interface, and udev gives it its final name.
until interface=$(ls "$device/net" 2>/dev/null) && [ -n "$interface" ]; do sleep 0.05; done
! command -v udevadm >/dev/null || udevadm settle --timeout=5 || :
# shellcheck disable=SC2012 # the kernel's names of interfaces
interface=$(ls "$device/net" | head -n 1)
[ "$interface" = "$4" ] || nsenter --net=/proc/1/ns/net ip link set dev "$interface" name "$4"
