#!/bin/sh -e
# Arguments: a PCI address, and the new driver of the device. `driver_override` keeps other drivers from taking the
# device (kernel documentation: ABI/testing/sysfs-bus-pci).
device=/sys/bus/pci/devices/$1
driver() { [ ! -e "$device/driver" ] || basename "$(readlink "$device/driver")"; }
[ -e "/sys/bus/pci/drivers/$2" ] || modprobe -- "$2"
echo "$2" >"$device/driver_override"
if [ "$(driver)" != "$2" ]; then
    [ ! -e "$device/driver" ] || echo "$1" >"$device/driver/unbind"
    echo "$1" >/sys/bus/pci/drivers_probe
fi
[ "$(driver)" = "$2" ] || {
    echo "$1 has the driver '$(driver)'" >&2
    exit 1
}
