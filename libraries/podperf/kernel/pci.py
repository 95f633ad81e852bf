"""PCI devices of a host, and their drivers: the kernel's own, or vfio-pci for a program in user space."""

from __future__ import annotations

import re

from podperf.errors import PodperfError
from podperf.hosts.base import Host, shell_script
from podperf.hosts.way_back import WayBack, existing_path

DEVICES = "/sys/bus/pci/devices"
FOR_USER_SPACE = "vfio-pci"
ADDRESS = re.compile(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
# The user-space drivers of these cards work through the kernel's driver, which must keep the device.
BIFURCATED = ("mlx4_core", "mlx5_core", "mana")
# When a device gets a driver, its interfaces appear in the first network namespace.
FIRST_NAMESPACE = ("nsenter", "--net=/proc/1/ns/net", "--")
DRIVER_TIMEOUT = 20  # seconds for a driver to take a device and to make its interface

_GIVE = shell_script("give_device.sh", beside=__file__)
_GIVE_BACK = shell_script("give_device_back.sh", beside=__file__)
_GIVE_TO_KERNEL = shell_script("give_device_to_kernel.sh", beside=__file__)


def attribute(host: Host, address: str, name: str, assumed: str | None = None) -> str | None:
    """An attribute of a device (a file of its folder in sysfs); None if the device has no such attribute."""
    done = host.ask("cat", f"{DEVICES}/{address}/{name}", check=False, assumed=assumed)
    return done.stdout.strip() if done.exit_code == 0 else None


def link(host: Host, address: str, name: str, assumed: str | None = None) -> str | None:
    """The last part of the target of an attribute that is a link: `driver`, `iommu_group`, `virtfn0`."""
    done = host.ask("readlink", f"{DEVICES}/{address}/{name}", check=False, assumed=assumed)
    return done.stdout.strip().rsplit("/", 1)[-1] or None


def missing_user_space_driver(host: Host) -> str | None:
    """The reason why programs in user space cannot use devices of this host, with the remedy, or None."""
    if not host.ask("ls", "/sys/kernel/iommu_groups", check=False, assumed="0").stdout.strip():
        return (
            f"{host.name} has no IOMMU in use, which {FOR_USER_SPACE} needs: switch it on in the firmware (VT-d, "
            "AMD-Vi) and on the kernel's command line (intel_iommu=on)"
        )
    found = f"test -e /sys/bus/pci/drivers/{FOR_USER_SPACE} || modprobe --dry-run --quiet {FOR_USER_SPACE}"
    if host.ask("sh", "-c", found, check=False, assumed="").exit_code:
        return f"the kernel of {host.name} has no driver {FOR_USER_SPACE} (modprobe {FOR_USER_SPACE} fails)"
    return None


def remember(host: Host, address: str, driver: str, way_back: WayBack, interface: str | None = None) -> None:
    """Note that a device goes back to this driver at the end, and its interface to the first network namespace.

    `interface` is the name of an interface that is in another network namespace now.
    """
    wish = (attribute(host, address, "driver_override", assumed="(null)") or "").replace("(null)", "")
    interfaces = host.ask("ls", f"{DEVICES}/{address}/net", check=False, assumed="").stdout.split()
    named = interface or next(iter(interfaces), "")
    back = ("sh", "-ec", _GIVE_BACK, "sh", address, wish, driver, named)
    way_back.note(f"the driver of {address}", *back, of=existing_path(f"{DEVICES}/{address}"))


def give_to_user_space(host: Host, address: str) -> None:
    _run(host, f"bound to {FOR_USER_SPACE}", _GIVE, address, FOR_USER_SPACE)


def give_to_kernel(host: Host, address: str) -> str:
    """Bind a device to the kernel's driver. Returns its interface, which is in the first network namespace."""
    assumed = f"vf-{address.rpartition(':')[2]}"
    return _run(host, "bound to the kernel's driver", _GIVE_TO_KERNEL, address, assumed=assumed).strip()


def move_into_namespace(host: Host, interface: str, namespace: str, name: str, *, check: bool = True) -> None:
    """Move an interface from the machine's first network namespace into this one, under this name."""
    host.do(*FIRST_NAMESPACE, "ip", "link", "set", "dev", interface, "netns", namespace, "name", name, check=check)


def describe_device(host: Host, address: str) -> dict[str, object]:
    """The kernel's description of a device: identity, driver, NUMA node and IOMMU group."""
    vendor, device, node = (attribute(host, address, name) for name in ("vendor", "device", "numa_node"))
    return {
        "address": address,
        "vendor_and_device": f"{vendor}:{device}".replace("0x", ""),
        "driver": link(host, address, "driver"),
        "numa_node": int(node) if node is not None and int(node) >= 0 else None,
        "iommu_group": link(host, address, "iommu_group"),
    }


def _run(host: Host, wanted: str, script: str, address: str, *arguments: str, assumed: str = "") -> str:
    limited = ("timeout", str(DRIVER_TIMEOUT), "sh", "-ec", script, "sh", address, *arguments)
    done = host.do(*limited, check=False, timeout=DRIVER_TIMEOUT + 5, assumed=assumed)
    if done.exit_code:
        late = f"nothing happened for {DRIVER_TIMEOUT} s" if done.exit_code == 124 else f"exit code {done.exit_code}"
        raise PodperfError(f"the PCI device {address} of {host.name} cannot be {wanted}: {done.stderr.strip() or late}")
    return done.stdout
