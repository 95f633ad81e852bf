#!/bin/sh -e
# Arguments: the PCI address of a physical function, and a number. No driver may take a virtual function before the
# physical function has its MAC.
pf=/sys/bus/pci/devices/$1
if [ -e "$pf/sriov_drivers_autoprobe" ]; then
    before=$(cat "$pf/sriov_drivers_autoprobe")
    trap 'echo $before > $pf/sriov_drivers_autoprobe' EXIT
    echo 0 >"$pf/sriov_drivers_autoprobe"
fi
echo "$2" >"$pf/sriov_numvfs"
