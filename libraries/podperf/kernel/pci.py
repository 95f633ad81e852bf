"""PCI devices of a host, and their drivers: the kernel's own, or vfio-pci for a program in user space."""

from __future__ import annotations

import re

from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.way_back import WayBack, existing_path

DEVICES = "/sys/bus/pci/devices"
FOR_USER_SPACE = "vfio-pci"
ADDRESS = re.compile(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
# The user-space drivers of these cards work through the kernel's driver, which must keep the device.
BIFURCATED = ("mlx4_core", "mlx5_core", "mana")
# When a device gets a driver, its interfaces appear in the first network namespace.
FIRST_NAMESPACE = ("nsenter", "--net=/proc/1/ns/net", "--")
DRIVER_TIMEOUT = 20  # seconds for a driver to take a device and to make its interface

# `sh -ec` runs this. $1: the device's address. Kernel documentation: ABI/testing/sysfs-bus-pci, driver_override.
_FUNCTIONS = """
device=/sys/bus/pci/devices/$1
driver() { [ ! -e $device/driver ] || basename "$(readlink $device/driver)"; }
"""
# Waits for the interface that a driver makes, and for its final name.
_INTERFACE = """
until interface=$(ls $device/net 2>/dev/null) && [ -n "$interface" ]; do sleep 0.05; done
! command -v udevadm >/dev/null || udevadm settle --timeout=5 || :
interface=$(ls $device/net | head -n 1)
"""
# $2: the new driver. `driver_override` keeps other drivers from taking the device.
_GIVE = (
    _FUNCTIONS
    + """
[ -e "/sys/bus/pci/drivers/$2" ] || modprobe -- "$2"
echo "$2" > $device/driver_override
if [ "$(driver)" != "$2" ]; then
  [ ! -e $device/driver ] || echo "$1" > $device/driver/unbind
  echo "$1" > /sys/bus/pci/drivers_probe
fi
[ "$(driver)" = "$2" ] || { echo "$1 has the driver '$(driver)'" >&2; exit 1; }
"""
)
# $2, $3, $4: the old `driver_override`, driver and interface; each may be empty. If the interface moved to another
# network namespace, or has another name, the driver makes the interface anew.
_GIVE_BACK = (
    _FUNCTIONS
    + """
echo "$2" > $device/driver_override
if [ "$(driver)" != "$3" ] || { [ -n "$4" ] && [ ! -e "$device/net/$4" ]; }; then
  [ ! -e $device/driver ] || echo "$1" > $device/driver/unbind
  [ -z "$3" ] || echo "$1" > "/sys/bus/pci/drivers/$3/bind"
fi
[ -n "$4" ] || exit 0
"""
    + _INTERFACE
    + """
[ "$interface" = "$4" ] || nsenter --net=/proc/1/ns/net ip link set dev "$interface" name "$4"
"""
)
# Starts the kernel's driver for the device anew, and prints the interface that the driver made.
_GIVE_TO_KERNEL = (
    _FUNCTIONS
    + """
echo > $device/driver_override
[ ! -e $device/driver ] || echo "$1" > $device/driver/unbind
modprobe -- "$(cat $device/modalias)" || :
echo "$1" > /sys/bus/pci/drivers_probe
[ -e $device/driver ] || { echo "the kernel has no driver for it" >&2; exit 1; }
"""
    + _INTERFACE
    + """
echo "$interface"
"""
)


def attribute(host: Host, address: str, name: str) -> str | None:
    """An attribute of a device (a file of its folder in sysfs); None if the device has no such attribute."""
    done = host.ask("cat", f"{DEVICES}/{address}/{name}", check=False)
    return done.stdout.strip() if done.exit_code == 0 else None


def link(host: Host, address: str, name: str) -> str | None:
    """The last part of the target of an attribute that is a link: `driver`, `iommu_group`, `virtfn0`."""
    done = host.ask("readlink", f"{DEVICES}/{address}/{name}", check=False)
    return done.stdout.strip().rsplit("/", 1)[-1] or None


def missing_user_space_driver(host: Host) -> str | None:
    """The reason why programs in user space cannot use devices of this host, with the remedy, or None."""
    if not host.ask("ls", "/sys/kernel/iommu_groups", check=False).stdout.strip():
        return (
            f"{host.name} has no IOMMU in use, which {FOR_USER_SPACE} needs: switch it on in the firmware (VT-d, "
            "AMD-Vi) and on the kernel's command line (intel_iommu=on)"
        )
    found = f"test -e /sys/bus/pci/drivers/{FOR_USER_SPACE} || modprobe --dry-run --quiet {FOR_USER_SPACE}"
    if host.ask("sh", "-c", found, check=False).exit_code:
        return f"the kernel of {host.name} has no driver {FOR_USER_SPACE} (modprobe {FOR_USER_SPACE} fails)"
    return None


def remember(host: Host, address: str, way_back: WayBack, interface: str | None = None) -> None:
    """Note that a device goes back to its present driver at the end, and its interface to the first network namespace.

    `interface` is the name of an interface that is in another network namespace now.
    """
    wish = (attribute(host, address, "driver_override") or "").replace("(null)", "")
    driver = link(host, address, "driver") or ""
    interfaces = host.ask("ls", f"{DEVICES}/{address}/net", check=False).stdout.split()
    named = interface or next(iter(interfaces), "")
    back = ("sh", "-ec", _GIVE_BACK, "sh", address, wish, driver, named)
    way_back.note(f"the driver of {address}", *back, of=existing_path(f"{DEVICES}/{address}"))


def give_to_user_space(host: Host, address: str) -> None:
    """Bind a device to vfio-pci."""
    _run(host, f"bound to {FOR_USER_SPACE}", _GIVE, address, FOR_USER_SPACE)


def give_to_kernel(host: Host, address: str) -> str:
    """Bind a device to the kernel's driver. Returns its interface, which is in the first network namespace."""
    return _run(host, "bound to the kernel's driver", _GIVE_TO_KERNEL, address).strip()


def move_into_namespace(host: Host, interface: str, namespace: str, name: str, *, check: bool = True) -> None:
    """Move an interface from the machine's first network namespace into this one, under this name."""
    host.do(*FIRST_NAMESPACE, "ip", "link", "set", "dev", interface, "netns", namespace, "name", name, check=check)


def describe_device(host: Host, address: str) -> dict[str, object]:
    """Identity, driver, NUMA node and IOMMU group of a device, as the kernel has them."""
    vendor, device, node = (attribute(host, address, name) for name in ("vendor", "device", "numa_node"))
    return {
        "address": address,
        "vendor_and_device": f"{vendor}:{device}".replace("0x", ""),
        "driver": link(host, address, "driver"),
        "numa_node": int(node) if node is not None and int(node) >= 0 else None,
        "iommu_group": link(host, address, "iommu_group"),
    }


def _run(host: Host, wanted: str, script: str, address: str, *arguments: str) -> str:
    limited = ("timeout", str(DRIVER_TIMEOUT), "sh", "-ec", script, "sh", address, *arguments)
    done = host.do(*limited, check=False, timeout=DRIVER_TIMEOUT + 5)
    if done.exit_code:
        late = f"nothing happened for {DRIVER_TIMEOUT} s" if done.exit_code == 124 else f"exit code {done.exit_code}"
        raise PodperfError(f"the PCI device {address} of {host.name} cannot be {wanted}: {done.stderr.strip() or late}")
    return done.stdout
