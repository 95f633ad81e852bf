#!/usr/bin/python3 -I
"""CNI plug-in `podperf-ovn`: gives a pod a port of its node's logical switch (CNI specification 1.0.0).

`cluster up` copies this file into the folder of the plug-ins, so it imports nothing of podperf. Its configuration has,
beside `ipam`:

    programs  the folder with the programs of OVN
    database  where OVN's northbound database is, as these programs name it
    switch    the logical switch
    mtu       of the pod's interface, bytes
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_interface, ip_network
from typing import Any

VERSIONS = ("0.3.0", "0.3.1", "0.4.0", "1.0.0")
INTEGRATION_BRIDGE = "br-int"  # that ovn-controller controls
TIMEOUT = 20  # seconds for all nodes to know a port
_FAILED = 100  # the first code of errors that a plug-in may define


def mac_of(address: IPv4Address) -> str:
    """The MAC address of the port that has this address."""
    return ":".join(("0a", "58", *(f"{byte:02x}" for byte in address.packed)))


def without_probes(address: IPv4Address | IPv6Address) -> str:
    """The end of a command that adds this address: it serves at once, because nobody else has it."""
    return " nodad" if address.version == 6 else ""


def port_of(container: str) -> str:
    """The name of a pod's port: of the node's end of its veth, and in OVN. The kernel takes 15 characters."""
    return f"ovn-{container[:11]}"


def inside(name: str, port: str, process: int, mtu: int, addresses: Mapping[str, Any]) -> list[str]:
    """The lines for `ip -batch` that make a pod's interface, whose other end is in the network of a process.

    `addresses` is the answer of the plug-in that gave them.
    """
    interfaces = [ip_interface(each["address"]) for each in addresses["ips"]]
    gateways = {ip_interface(each["address"]).version: each["gateway"] for each in addresses["ips"]}
    routes = (
        (each["dst"], each.get("gw") or gateways[ip_network(each["dst"]).version]) for each in addresses["routes"]
    )
    veth = f"mtu {mtu} type veth peer name {port} mtu {mtu} netns {process}"
    return [
        f"link add {name} address {mac_of_first(addresses)} {veth}",
        *(f"address add {each} dev {name}{without_probes(each)}" for each in interfaces),
        f"link set {name} up",
        *(f"route add {network} via {gateway} dev {name}" for network, gateway in routes),
    ]


def mac_of_first(addresses: Mapping[str, Any]) -> str:
    """The MAC address that belongs to the first of these addresses, which is of IPv4."""
    return mac_of(IPv4Address(addresses["ips"][0]["address"].partition("/")[0]))


class PluginCall:
    """One call of the plug-in."""

    def __init__(self, environment: Mapping[str, str], configuration: Mapping[str, Any]) -> None:
        self._environment, self._configuration = environment, configuration
        self._port = port_of(environment["CNI_CONTAINERID"])

    def add(self) -> Mapping[str, Any]:
        """Make the port. When this returns, all nodes know it."""
        addresses = json.loads(self._addresses())
        try:
            self._make_interface(addresses)
            self._make_port(addresses)
        except BaseException:
            with suppress(Failed):  # the first reason is the one to tell
                self.delete()
            raise
        pod = {"name": self._interface, "mac": mac_of_first(addresses), "sandbox": self._environment["CNI_NETNS"]}
        for each in addresses["ips"]:
            each["interface"] = 1
        return {**addresses, "interfaces": [{"name": self._port}, pod]}

    def _make_interface(self, addresses: Mapping[str, Any]) -> None:
        within = ("nsenter", f"--net={self._environment['CNI_NETNS']}", "--")
        lines = inside(self._interface, self._port, os.getpid(), self._configuration["mtu"], addresses)
        do(*within, "ip", "-batch", "-", given="\n".join(lines))
        # Open vSwitch in user space neither completes checksums nor makes segments for the kernel.
        do(*within, "ethtool", "-K", self._interface, "tx", "off", "tso", "off")
        # Otherwise the kernel answers for the addresses of the node, and the frames that follow pass Open vSwitch by.
        do("ip", "link", "set", self._port, "arp", "off", "up")

    def _make_port(self, addresses: Mapping[str, Any]) -> None:
        port, of_ovn = self._port, f"external_ids:iface-id={self._port}"
        self._switch("add-port", INTEGRATION_BRIDGE, port, "--", "set", "Interface", port, of_ovn)
        known = [each["address"].partition("/")[0] for each in addresses["ips"]]
        mac = mac_of_first(addresses)
        switch = self._configuration["switch"]
        self._ovn("lsp-add", switch, port, "--", "lsp-set-addresses", port, " ".join((mac, *known)))
        self._ovn("wait-until", "Logical_Switch_Port", port, "up=true")  # flows for the port are on this node
        self._ovn("--wait=hv", "sync")  # and those that lead to this node are on all others

    def delete(self) -> None:
        """Remove what is there of the port."""
        self._switch("--if-exists", "del-port", INTEGRATION_BRIDGE, self._port)
        self._ovn("--if-exists", "lsp-del", self._port)
        subprocess.run(["ip", "link", "delete", self._port], capture_output=True, check=False)
        self._addresses("DEL")

    def check(self) -> None:
        self._switch("port-to-br", self._port)
        self._ovn("lsp-get-up", self._port)
        self._addresses()

    @property
    def _interface(self) -> str:
        return self._environment["CNI_IFNAME"]

    def _addresses(self, command: str | None = None) -> str:
        """The answer of the plug-in for addresses to this command, by default to that of this call."""
        kind = self._configuration["ipam"]["type"]
        plugin = shutil.which(kind, path=self._environment["CNI_PATH"])
        if plugin is None:
            raise Failed(f"there is no plug-in {kind} in {self._environment['CNI_PATH']}")
        environment = {**self._environment, "CNI_COMMAND": command or self._environment["CNI_COMMAND"]}
        return do(plugin, given=json.dumps(self._configuration), environment=environment)

    def _switch(self, *words: str) -> str:
        return do(f"{self._configuration['programs']}/ovs-vsctl", f"--timeout={TIMEOUT}", *words)

    def _ovn(self, *words: str) -> str:
        database = f"--db={self._configuration['database']}"
        return do(f"{self._configuration['programs']}/ovn-nbctl", database, f"--timeout={TIMEOUT}", *words)


class Failed(Exception):
    """A command failed. The text is for the runtime that called the plug-in."""


def do(*command: str, given: str = "", environment: Mapping[str, str] | None = None) -> str:
    """The output of a command that gets this input."""
    done = subprocess.run(command, input=given, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}: {(done.stderr + done.stdout).strip()}")
    return done.stdout


def called(environment: Mapping[str, str], given: str) -> Mapping[str, Any] | None:
    """The answer of the plug-in. Failed if it cannot do its task."""
    command = environment["CNI_COMMAND"]
    if command == "VERSION":
        return {"cniVersion": VERSIONS[-1], "supportedVersions": VERSIONS}
    plugin = PluginCall(environment, json.loads(given))
    if command == "ADD":
        return plugin.add()
    {"DEL": plugin.delete, "CHECK": plugin.check}[command]()
    return None


def main() -> int:
    try:
        answer = called(os.environ, sys.stdin.read())
    except (Failed, KeyError, ValueError) as error:
        print(json.dumps({"cniVersion": VERSIONS[-1], "code": _FAILED, "msg": f"podperf-ovn: {error!r}"}))
        return 1
    if answer is not None:
        print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
