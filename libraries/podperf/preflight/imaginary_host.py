"""An imaginary host: it runs no command, has every program installed, and answers the questions of drivers.

It remembers changes that drivers read back. Answers that no driver reads are empty.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from zlib import crc32

from podperf.cpu_lists import format_cpu_list
from podperf.hosts.base import Commands, Completed, Process
from podperf.hosts.local import LocalHost
from podperf.kernel.cpus import Cpus
from podperf.kernel.pci import FOR_USER_SPACE
from podperf.pods.forwarders.testpmd import POLLING_THREADS
from podperf.preflight.recording import NO_MAC, program, within

THIS_MACHINE = LocalHost().name
_OTHER_END = 1_000_000  # above any number of an interface here, from which those of the other ends count
FIRST_PROCESS = 10_000_000  # above any number that Linux gives (kernel.pid_max)
VFS_OFFERED = 256  # virtual functions of each port; the longest chain needs 255
QUEUES = 8  # of each card
VETH = "veth"
RUNS_PROGRAMS = ("nfp",)  # drivers of cards that run eBPF programs themselves


@dataclass(frozen=True)
class Device:
    """The device behind an interface: the kernel's driver, and the PCI address if there is one."""

    driver: str
    pci: str | None = None


class ImaginaryHost(Commands):
    """`ports` are the interfaces that exist from the start, by namespace and name. All others are veth ends."""

    def __init__(self, name: str, cpus: Cpus, ports: Mapping[tuple[str, str], Device] | None = None) -> None:
        self.name, self.cpus = name, cpus
        self.namespaces: list[str] = sorted({namespace for namespace, _ in ports or {} if namespace})
        self.files: dict[str, bytes] = {}
        self.processes: dict[int, ImaginaryProcess] = {}
        self.containers: dict[int, str] = {}  # by their first process
        self.virtual_functions: dict[str, int] = {}  # by the PCI address of their port
        self.for_user_space: set[str] = set()  # PCI addresses of devices with the driver for user space
        self.queues: dict[str, int] = {}  # by interface, after a command has set them
        self.switch_ports = count(1)
        self._numbers = count(FIRST_PROCESS)
        self._macs: dict[str, str] = {}
        self._links: dict[tuple[str, str], str] = {}
        self.attributes: dict[tuple[str, ...], str] = {}  # written values, by interface and attribute
        self._devices = {interface: device for (_, interface), device in (ports or {}).items()}
        for namespace, interface in ports or {}:
            self.mac(namespace, interface)

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        namespace, words = within(command)
        line = " ".join(words)
        for pattern, answer in _ANSWERS:
            if found := pattern.search(line):
                try:
                    said = answer(Question(self, namespace, words, found, stdin or ""))
                except _Refused as refusal:
                    return Completed(tuple(command), 1, "", str(refusal))
                return Completed(tuple(command), 0, said, "")
        return Completed(tuple(command), 0, "", "")

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        namespace, words = within(command)
        process = ImaginaryProcess(self, namespace, self.next_number(), words, tuple(cpus))
        self.processes[process.pid] = process
        return process

    def put(self, content: bytes, path: str) -> None:
        self.files[path] = content

    def get(self, path: str) -> bytes:
        if path in self.files:
            return self.files[path]
        for pattern, content in _FILES:
            if found := pattern.fullmatch(path):
                return content(self, found).encode()
        raise FileNotFoundError(path)

    def device(self, interface: str) -> Device:
        """The device behind an interface."""
        return self._devices.get(interface, Device(VETH))

    def driver_of(self, pci: str) -> str:
        """The driver of the device at this address. Empty if no port has this address."""
        return next((each.driver for each in self._devices.values() if each.pci == pci), "")

    def mac(self, namespace: str, interface: str) -> str:
        """The MAC of an interface, which exists from now on. A device keeps its MAC in every namespace."""
        device = self.device(interface).pci or f"{namespace}/{interface}"
        number = len(self._macs)
        digits = f"{crc32(self.name.encode()):08x}{number:02x}"
        mac = self._macs.setdefault(device, ":".join(["02", *(digits[place : place + 2] for place in range(0, 10, 2))]))
        return self._links.setdefault((namespace, interface), mac)

    def move(self, interface: str, source: str, target: str, name: str) -> None:
        """An interface changes its namespace, and perhaps its name."""
        mac = self.mac(source, interface)
        device = self.device(interface)
        for where, other in list(self._links):
            if (where, other) == (source, interface) or (device.pci and self.device(other).pci == device.pci):
                del self._links[where, other]
        self._links[target, name] = mac
        self._devices[name] = device

    def links(self, namespace: str) -> list[dict[str, Any]]:
        """The interfaces in a namespace, in the form of `ip -json`."""
        return [self.link(namespace, name) for where, name in list(self._links) if where == namespace]

    def other_ends(self, namespace: str) -> list[dict[str, Any]]:
        """The other ends of all interfaces in other namespaces, in the form of `ip -json`."""
        found = []
        for key in list(self._links):
            if key[0] != namespace:
                near = self.link(*key)
                found.append({"ifname": _other_end(*key), "ifindex": near["link_index"], "link_index": near["ifindex"]})
        return found

    def link(self, namespace: str, interface: str) -> dict[str, Any]:
        """An interface, in the form of `ip -json`."""
        device = self.device(interface)
        vfs = range(self.virtual_functions.get(device.pci, 0)) if device.pci else ()
        index = 2 + [*self._links, (namespace, interface)].index((namespace, interface))
        return {
            "ifname": interface,
            "ifindex": index,
            "link_index": _OTHER_END + index,
            "address": self.mac(namespace, interface),
            "flags": ["UP"],
            "mtu": 1500,
            "link_type": "ether",
            "addr_info": [],
            "linkinfo": {"info_kind": VETH} if device.driver == VETH else {},
            "xdp": {"mode": 1, "prog": {"id": 1}},  # only after a program was loaded
            "vfinfo_list": [{"vf": number, "address": NO_MAC, "trust": False, "spoofchk": True} for number in vfs],
        }

    def next_number(self) -> int:
        """An unused process or thread number."""
        return next(self._numbers)


@dataclass
class ImaginaryProcess:
    """An imaginary process. Its output has the words that drivers wait for."""

    host: ImaginaryHost
    namespace: str
    pid: int
    command: Sequence[str]
    cpus: tuple[int, ...]
    _lines: list[str] = field(default_factory=list)
    _running: bool = True

    def send(self, line: str) -> None:
        self._lines.append(f"testpmd> {line}")

    def receive(self, timeout: float) -> str:
        if program(self.command) == "dpdk-testpmd" and self._lines:
            return self._lines.pop(0)
        ports = [{"mac": self.host.mac("", f"TRex port {number}")} for number in (0, 1)]
        sides = {side: {"mac": self._mac_of_port(side)} for side in ("left", "right")}
        trex = any(word.endswith("trex_client.py") for word in self.command)
        return json.dumps({"ready": {"version": "", "engine": "xdp", "ports": ports if trex else sides}})

    def _mac_of_port(self, side: str) -> str:
        """The MAC of the software tester's port on this side: `--left INTERFACE@NAMESPACE`."""
        named = dict(zip(self.command, self.command[1:], strict=False)).get(f"--{side}", side)
        interface, _, namespace = named.partition("@")
        return self.host.mac(namespace or self.namespace, interface)

    def alive(self) -> bool:
        return self._running

    def errors(self) -> str:
        return "entering main loop"  # DPDK's l2fwd

    def stop(self, timeout: float = 5.0) -> None:
        self._running = False


class _Refused(Exception):
    """The standard error of a command that fails. Only for commands whose failure a driver reads."""


@dataclass(frozen=True)
class Question:
    """A command for an imaginary host: its namespace, its words, the match of its pattern, and its standard input."""

    host: ImaginaryHost
    namespace: str
    words: Sequence[str]
    found: re.Match[str]
    stdin: str


# --- answers to commands, and the changes that commands make ----------------------------------------------------------


def _links(question: Question) -> str:
    return json.dumps(question.host.links(question.found[1] or question.namespace))


def _first_process(question: Question) -> str:
    number = question.host.next_number()
    question.host.containers[number] = question.words[4]
    return str(number)


def _end_container(question: Question) -> str:
    """The process that passes on the input and output of a container ends with its program."""
    for each in question.host.processes.values():
        if each.namespace == question.host.containers.get(int(question.found[1])):
            each.stop()
    return ""


def _other_end(namespace: str, interface: str) -> str:
    """The name of the worker's end of a pod's interface."""
    return f"veth-{namespace}-{interface}"


def _other_ends(question: Question) -> str:
    return json.dumps(question.host.other_ends(question.namespace))


def _link(question: Question) -> str:
    return json.dumps([question.host.link(question.namespace, question.found[1])])


def _move(question: Question) -> str:
    interface, target, name = question.found[1], question.found[2], question.found[3] or question.found[1]
    question.host.move(interface, question.namespace, target, name)
    return ""


def _move_back(question: Question) -> str:
    namespace, interface, name = question.words[-3:]
    question.host.move(interface, namespace, "", name)
    return ""


def _plugin_result(question: Question) -> str:
    settings = dict(word.split("=", 1) for word in question.words[1:] if "=" in word)
    configuration = json.loads(question.stdin)
    namespace, interface = settings["CNI_NETNS"].rsplit("/", 1)[-1], settings["CNI_IFNAME"]
    sandbox = {"name": interface, "sandbox": settings["CNI_NETNS"], "mac": question.host.mac(namespace, interface)}
    end = _other_end(namespace, interface)
    addresses = configuration.get("ipam", {}).get("addresses", [{"address": "192.0.2.1/32"}])
    return json.dumps(
        {
            "interfaces": [{"name": end, "mac": question.host.mac(question.namespace, end)}, sandbox],
            "ips": [each | {"interface": 1} for each in addresses],
        }
    )


def _threads(question: Question) -> str:
    """One thread. For the pollers of a switch or of a pod: as many threads as there are pollers."""
    host, (prefix, folder) = question.host, question.words[-2:]
    process = host.processes.get(int(re.sub(r"\D", "", folder) or 0))
    if prefix in POLLING_THREADS[:-1] or host.device(prefix.removeprefix("napi/").removesuffix("-")).pci:
        return ""  # the driver of a real card has no threads
    if prefix == "vpp_wk" and process is not None:
        return "\n".join(str(host.next_number()) for _ in range(len(process.cpus) - 1))
    if prefix == POLLING_THREADS[-1] and process is not None:
        (lcores,) = (word for word in process.command if word.startswith("--lcores="))
        return "\n".join(str(host.next_number()) for _ in range(lcores.count("@") - 1))
    if prefix == "pmd-c" and process is not None:
        mask = int(host.files.get("pmd-cpu-mask", b"0x1"), 16)
        threads = {host.next_number(): cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1}
        for thread, cpu in threads.items():
            host.files[f"{folder}/{thread}/comm"] = f"pmd-c{cpu:02}/id:{thread}".encode()
        return "\n".join(map(str, threads))
    return str(host.next_number())


def _remember_mask(question: Question) -> str:
    question.host.files["pmd-cpu-mask"] = question.found[1].encode()
    return ""


def _switch_ports(question: Question) -> str:
    ports = [[next(question.host.switch_ports), ["set", []]] for _ in question.found[1].split()]
    return json.dumps({"headings": ["ofport", "error"], "data": ports})


def _add_namespace(question: Question) -> str:
    question.host.namespaces.append(question.found[1])
    return ""


def _delete_namespace(question: Question) -> str:
    question.host.namespaces.remove(question.found[1])
    return ""


def _set_pages(question: Question) -> str:
    folder = question.found[1]
    question.host.files |= {f"{folder}/{name}": question.stdin.encode() for name in ("nr_hugepages", "free_hugepages")}
    return ""


def _remove_file(question: Question) -> str:
    question.host.files.pop(question.found[1], None)
    return ""


def _files(question: Question) -> str:
    """The names of the files in a folder."""
    folder = f"{question.found[1]}/"
    return "\n".join(path.removeprefix(folder) for path in question.host.files if path.startswith(folder))


def _page_folders(question: Question) -> str:
    nodes = sorted({question.host.cpus.node(cpu) for cpu in question.host.cpus.usable})
    return "\n".join(f"{question.found[1]}/node{node}{question.found[2]}" for node in nodes)


def _digest(question: Question) -> str:
    """Only this machine has podperf's own programs. Another machine gets a copy."""
    *here, copy = question.words[2:]
    found = {copy: question.host.files[copy]} if copy in question.host.files else {}
    found |= {path: Path(path).read_bytes() for path in here if Path(path).is_file()}
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {path}\n" for path, content in found.items())


def _driver(question: Question) -> str:
    device = question.host.device(question.found[1])
    return f"driver: {device.driver}\nbus-info: {device.pci or ''}\n"


def _queues(question: Question) -> str:
    usual = QUEUES if question.host.device(question.found[1]).pci else 1
    return f"Current hardware settings:\nCombined: {question.host.queues.get(question.found[1], usual)}\n"


def _remember_queues(question: Question) -> str:
    question.host.queues[question.found[1]] = int(question.found[2])
    return ""


def _driver_of_device(question: Question) -> str:
    address = question.found[1]
    return f"../{FOR_USER_SPACE if address in question.host.for_user_space else question.host.driver_of(address)}"


def _offload_program(question: Question) -> str:
    driver = question.host.device(question.found[1]).driver
    if driver not in RUNS_PROGRAMS:
        raise _Refused(f"the driver {driver} offloads none")
    return ""


def _offloads(question: Question) -> str:
    """A veth has receive offload only after a command has switched it on. A NIC always has it."""
    veth = question.host.device(question.found[1]).driver == VETH
    return f"generic-receive-offload: {'off' if veth else 'on'}\n"


def _interrupts(question: Question) -> str:
    """Only the host knows the interrupts of a card and their CPUs. One line stands for all of them."""
    return f"<each-interrupt-of-{question.words[-1]}> <CPUs-that-served-it-before>"


def _remember_attribute(question: Question) -> str:
    *_, interface, attribute, value = question.words
    question.host.attributes[interface, attribute] = value
    return ""


def _attribute(question: Question) -> str:
    return question.host.attributes.get(tuple(question.words[-2:]), "0")


def _make_virtual_functions(question: Question) -> str:
    address, number = question.words[-2:]
    question.host.virtual_functions[address] = int(number)
    return ""


def _number_of_virtual_functions(question: Question) -> str:
    return str(question.host.virtual_functions.get(question.found[1], 0))


def _virtual_function(question: Question) -> str:
    return f"../{_address_of_function(question.found[1], int(question.found[2]))}"


def _address_of_function(port: str, number: int) -> str:
    """The PCI address of a virtual function. As on many cards, it follows the address of its port.

    Each further 64 functions are in the next PCI domain. So two ports of a card never have the same function.
    """
    domain, bus, device, function = re.split("[:.]", port)
    further, place = divmod(number, 64)
    first = int(device, 16) + 2 + 8 * int(function)
    return f"{int(domain, 16) + further:04x}:{bus}:{first + place // 8:02x}.{place % 8}"


def _given_functions(question: Question) -> str:
    """Only the pods of a cluster look for functions that nobody has made. Then an administrator has made them, for
    programs in user space."""
    port = question.words[-1]
    number = question.host.virtual_functions.setdefault(port, VFS_OFFERED)
    addresses = [_address_of_function(port, each) for each in range(number)]
    question.host.for_user_space.update(addresses)
    return "\n".join(addresses)


def _cpus_of_node(host: ImaginaryHost, found: re.Match[str]) -> str:
    return format_cpu_list(cpu for cpu in host.cpus.online if host.cpus.node(cpu) == int(found[1]))


def _boot(host: ImaginaryHost, found: re.Match[str]) -> str:
    return Path(found[1]).read_text() if host.name == THIS_MACHINE else "another machine's"


_SERVER = {
    "get_version": {"result": {"version": "as it runs there"}},
    "api_sync_v2": {"error": {"specific_err": "server: '5.1'"}},
}

Answer = Callable[[Question], str]

_ANSWERS: Sequence[tuple[re.Pattern[str], Answer]] = [
    (re.compile(pattern), answer)
    for pattern, answer in (
        (r"^ip netns (?:add|attach) (\S+)", _add_namespace),
        (r"(?s)^sh -c .* /proc/\[0-9\]\*/cgroup", _first_process),
        (r"(?s)^sh -c .* sh (\d+) (?:TERM|KILL) ", _end_container),
        (r"^ip netns del (\S+)$", _delete_namespace),
        (r"^ip netns list$", lambda question: "\n".join(question.host.namespaces)),
        (r"^ip -json netns list$", lambda question: json.dumps([{"name": each} for each in question.host.namespaces])),
        (r"^ip -json (?:-details )?link show dev (\S+)$", _link),
        (r"^ip -json -details link show type veth$", _other_ends),
        (r"^ip -json (?:-n (\S+) )?(?:-details )?(?:link|address) show$", _links),
        (r"^ip link set dev (\S+) netns (\S+)(?: name (\S+))?$", _move),
        (r'^sh -c ip -n "\$1" link set dev "\$2" down', _move_back),
        (r"^env CNI_COMMAND=ADD ", _plugin_result),
        (r"^sh -c for t in ", _threads),
        (r"^ovs-vsctl .*pmd-cpu-mask=\"(0x[0-9a-f]+)\"", _remember_mask),
        (r"^ovs-vsctl .*--format=json list Interface (.*)", _switch_ports),
        (r"^tc -json filter show ", lambda _: '[{"options": {"prog": {"id": 1}}}]'),
        (r"^bpftool --json prog show ", lambda _: '{"map_ids": [1]}'),
        (r"^bpftool --json map show ", lambda _: '{"id": 1, "name": "target", "bytes_value": 4}'),
        (r"^tee (/sys/\S+)/nr_hugepages$", _set_pages),
        (r"^rm (?:-f )?(\S+)$", _remove_file),
        (r"^sh -c ls -d (/sys/devices/system/node)/node\S+(/hugepages/\S+)$", _page_folders),
        (r"^sha256sum -- (\S+) ", _digest),
        (r"^ethtool -i (\S+)$", _driver),
        (r"^ethtool -k (\S+)$", _offloads),
        (r"^unshare .* link set dev (\S+) xdpoffload object ", _offload_program),
        (r"^ethtool -l (\S+)$", _queues),
        (r"^ethtool -L (\S+) combined (\d+)$", _remember_queues),
        (r"^cat \S+/sriov_totalvfs$", lambda _: str(VFS_OFFERED)),
        (r"^cat \S+/([^/]+)/sriov_numvfs$", _number_of_virtual_functions),
        (r"^cat \S+/driver_override$", lambda _: "(null)"),
        (r"^readlink \S+/([^/]+)/virtfn(\d+)$", _virtual_function),
        (r"^readlink \S+/([^/]+)/driver$", _driver_of_device),
        (r"(?s)^sh -c for i in .*/msi_irqs\" .*/smp_affinity_list\"", _interrupts),
        (r"^unshare --mount sh -c .*echo \"\$3\" > \S+ sh ", _remember_attribute),
        (r"^unshare --mount sh -c .*{ cat \S+ 2>.* sh ", _attribute),
        (r"(?s)^sh -c .*/virtfn\$number\"", _given_functions),
        (r"(?s)^sh -ec .*>\"\$pf/sriov_numvfs\"", _make_virtual_functions),
        (r"(?s)^timeout .*echo \"\$interface\"", lambda question: f"vf-{question.words[-1].rsplit(':', 1)[-1]}"),
        (r"^ls /sys/kernel/iommu_groups$", lambda _: "0"),
        (r"^ls (/run/\S+)$", _files),
        (r"ldd .*ovs-vswitchd", lambda _: "libxdp.so.1"),
        (r" vpp_plugins/(\S+)$", lambda question: question.found[1]),
        (r"trex_ask\.py ", lambda _: json.dumps(_SERVER)),
    )
]

_FILES: Sequence[tuple[re.Pattern[str], Callable[[ImaginaryHost, re.Match[str]], str]]] = [
    (re.compile(pattern), content)
    for pattern, content in (
        (r"/sys/devices/system/cpu/online", lambda host, _: format_cpu_list(host.cpus.online)),
        (r"/sys/devices/system/node/online", lambda host, _: format_cpu_list(map(host.cpus.node, host.cpus.online))),
        (r"/sys/devices/system/node/node(\d+)/cpulist", _cpus_of_node),
        (r"/proc/self/status", lambda host, _: f"Cpus_allowed_list:\t{format_cpu_list(host.cpus.usable)}\n"),
        (r"/proc/mounts", lambda *_: "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
        (r"/sys/fs/cgroup/cgroup\.(controllers|subtree_control)", lambda *_: "cpuset cpu io memory pids"),
        (r"/proc/meminfo", lambda *_: f"MemAvailable: {1 << 30} kB\n"),
        (r"/sys/.*/(nr|free|surplus)_hugepages", lambda *_: "0"),
        (r"(/proc/sys/kernel/random/boot_id)", _boot),
        (r"/run/podperf/.*pid", lambda host, _: str(host.next_number())),  # of a program that was started
    )
]
