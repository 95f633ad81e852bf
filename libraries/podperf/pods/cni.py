"""Calls CNI plug-ins as a container runtime does (CNI specification 1.0.0, section 3 and 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from podperf.addressing import mac_of
from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Host
from podperf.hosts.linux import assumed_mac
from podperf.hosts.namespaces import NetworkNamespace
from podperf.pods.base import Attachment, PodInterface

CNI_VERSION = "1.0.0"
PLUGIN_DIRECTORY = "/usr/lib/cni"


class CniPlugins:
    """The CNI plug-ins of Debian's packages. They run in the worker's network namespace."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def missing(self, *names: str) -> str | None:
        """The reason why these plug-ins cannot be called, or None."""
        absent = [
            name for name in names if self._host.ask("test", "-x", _path(name), check=False, assumed="").exit_code
        ]
        if not absent:
            return None
        return (
            f"CNI plug-in {', '.join(absent)} is not in {PLUGIN_DIRECTORY} (Debian package containernetworking-plugins)"
        )

    def add(self, container: str, pod: NetworkNamespace, attachment: Attachment) -> PodInterface:
        """Call ADD of each plug-in of the list in order. Each plug-in gets the result of the previous one."""
        result: Any = None
        for plugin in attachment.plugins:
            answer = self._call("ADD", plugin, container, pod, attachment, result)
            result = json.loads(answer)
        return interface_of(result, attachment.interface)

    def delete(self, container: str, pod: NetworkNamespace, attachment: Attachment) -> None:
        """Call DEL of each plug-in of the list in reverse order."""
        for plugin in reversed(attachment.plugins):
            self._call("DEL", plugin, container, pod, attachment, None)

    def _call(
        self,
        command: str,
        plugin: Mapping[str, Any],
        container: str,
        pod: NetworkNamespace,
        attachment: Attachment,
        previous: Any,
    ) -> str:
        config = {"cniVersion": CNI_VERSION, "name": attachment.network, **plugin}
        wanted = {key: attachment.capabilities[key] for key in plugin.get("capabilities", {})}
        if wanted:
            config["runtimeConfig"] = wanted
        if previous is not None:
            config["prevResult"] = previous
        environment = {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": container,
            "CNI_NETNS": f"/run/netns/{pod.namespace}",
            "CNI_IFNAME": attachment.interface,
            "CNI_PATH": PLUGIN_DIRECTORY,
        }
        kind = plugin["type"]
        try:
            return self._host.do(
                "env",
                *(f"{name}={value}" for name, value in environment.items()),
                _path(kind),
                stdin=json.dumps(config),
                assumed=lambda: self._assumed_result(pod, attachment.interface, plugin),
            ).stdout
        except CommandFailed as error:
            raise PodperfError(
                f"CNI plug-in {kind} could not {command} {attachment.interface} of {container}: {error}"
            ) from error

    def _assumed_result(self, pod: NetworkNamespace, interface: str, plugin: Mapping[str, Any]) -> str:
        """The result of a plug-in that a plan assumes: a veth pair, with the addresses that it was asked for."""
        end = assumed_end(pod, interface)
        inside = {"name": interface, "sandbox": f"/run/netns/{pod.namespace}", "mac": assumed_mac(pod, interface)}
        addresses = plugin.get("ipam", {}).get("addresses", [{"address": "192.0.2.1/32"}])
        ends = [{"name": end, "mac": assumed_mac(self._host, end)}, inside]
        return json.dumps({"interfaces": ends, "ips": [address | {"interface": 1} for address in addresses]})


def _path(plugin: str) -> str:
    return f"{PLUGIN_DIRECTORY}/{plugin}"


def assumed_end(pod: NetworkNamespace, interface: str) -> str:
    """The name of the worker's end of a pod's veth that a plan assumes."""
    return f"veth-{pod.namespace}-{interface}"


def interface_of(result: Mapping[str, Any], name: str) -> PodInterface:
    """The pod's interface in a CNI ADD result: the interface of this name that has a sandbox.

    Raises PodperfError if the result has no such interface.
    """
    interfaces = result.get("interfaces", [])
    ours = [number for number, each in enumerate(interfaces) if each.get("sandbox") and each["name"] == name]
    if not ours:
        raise PodperfError(f"the CNI result names no interface {name} in a sandbox: {json.dumps(result)}")
    addresses = [ip for ip in result.get("ips", []) if ip.get("interface") == ours[0]]
    host_ends = [interface["name"] for interface in interfaces if not interface.get("sandbox")]
    return PodInterface(
        name=name,
        mac=mac_of(interfaces[ours[0]]["mac"], f"{name}, in a CNI result"),
        address=addresses[0]["address"].split("/")[0] if addresses else None,
        host_interface=host_ends[-1] if host_ends else None,  # a result lists a bridge before its port
    )
