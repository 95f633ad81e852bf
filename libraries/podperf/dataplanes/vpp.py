"""The VPP of a run. It has a private start-up file, run directory and sockets, and shares nothing with the host's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any

from podperf.errors import PodperfError
from podperf.hosts.base import Completed, Host, Process
from podperf.hosts.linux import unix_socket
from podperf.hosts.run_directory import free_shared_memory, shared_memory_prefix
from podperf.kernel import pci
from podperf.kernel.thread_time import CpuUser
from podperf.kernel.threads import threads_named
from podperf.model import PageSize

START_TIMEOUT = 60.0  # seconds, enough for an emulated CPU; on a free core VPP answers after 0.5 to 1 s
ANSWER_TIMEOUT = 30.0  # seconds, enough for an emulated CPU
REMEDY = (
    "packages vpp and vpp-plugin-core of https://packagecloud.io/fdio/release, or a build of "
    "https://github.com/FDio/vpp whose bin folder is on the PATH"
)

MEMIF = "memif_plugin.so"
_WITHOUT_MEMIF = (
    f"{MEMIF}, by which pods are attached: the package vpp-plugin-core has it (of the release of vpp itself)"
)

# VPP ends at its start if it does not know a keyword. All releases since 2021 know these keywords.
# Buffers are in hugepages only if podperf has reserved hugepages. Otherwise VPP would reserve hugepages of its own, and
# leave them behind.
_START_UP = """\
unix {{ nodaemon nosyslog nocolor runtime-dir {directory} cli-listen {directory}/cli.sock log {directory}/vpp.log }}
socksvr {{ socket-name {directory}/api.sock }}
statseg {{ socket-name {directory}/stats.sock }}
api-segment {{ prefix {shared_memory} }}
cpu {{ main-core {main_core} {workers} }}
memory {{ main-heap-size 512M }}
buffers {{ page-size {page_size} }}
plugins {{
  plugin default {{ disable }}
  plugin af_packet_plugin.so {{ enable }}
  plugin memif_plugin.so {{ enable }}
{plugin}}}
{devices}"""
_WITH_DPDK = "  plugin dpdk_plugin.so { enable }\n"
_PLUGIN_FILES = 'bin=$(dirname "$(readlink -f "$(which vpp)")"); ls "$bin"/../lib*/$1 "$bin"/../lib*/*/$1'
_COLOUR = re.compile(r"\x1b\[\d*m")
# A row of `show runtime`: name, state, calls, vectors, suspends, clocks a packet, vectors a call.
_NODE = re.compile(r"^(\S+)\s+([a-z]+(?: [a-z]+)*)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+)$")
_WAIT_FOR_ANSWER = 'until "$@"; do [ -e "/proc/$VPP/exe" ] || exit 1; sleep 0.05; done'


class Vpp:
    """A running VPP in the network of `host`, with its main thread on the CPU `main` and a worker thread on each CPU of
    `workers`.

    Without a worker thread, the main thread forwards. `devices` has the addresses of the PCI devices that VPP drives by
    DPDK, by their names in VPP. If it drives devices, the memory of DPDK is in these `pages`.
    """

    def __init__(
        self,
        host: Host,
        directory: str,
        main: int,
        workers: Sequence[int],
        undo: ExitStack,
        devices: Mapping[str, str] = MappingProxyType({}),
        *,
        pages: PageSize = PageSize.NONE,
    ) -> None:
        self._host, self._main, self._workers = host, main, workers
        self._socket = unix_socket(directory, "cli.sock")
        self.start_up = _START_UP.format(
            directory=directory,
            shared_memory=shared_memory_prefix(),
            main_core=main,
            page_size=f"{pages.value}M" if devices and pages else "default",
            plugin=_WITH_DPDK if devices else "",
            devices=_dpdk_section(devices, in_hugepages=bool(pages)) if devices else "",
            workers=f"corelist-workers {','.join(map(str, workers))}" if workers else "",
        )
        host.put(self.start_up.encode(), f"{directory}/startup.conf")
        undo.callback(free_shared_memory, host)
        # DPDK keeps its files under RUNTIME_DIRECTORY.
        start = ("env", f"RUNTIME_DIRECTORY={directory}", "vpp", "-c", f"{directory}/startup.conf")
        self.process: Process = host.spawn(*start, cpus=(main, *workers))
        undo.callback(self.process.stop)
        # `timeout` limits the wait. The shell asks again until VPP answers or has ended.
        done = host.ask(
            *("env", f"VPP={self.process.pid}", "timeout", str(START_TIMEOUT)),
            *("sh", "-c", _WAIT_FOR_ANSWER, "sh", "vppctl", "-s", self._socket, "show", "version"),
            check=False,
            timeout=START_TIMEOUT + 5,
            assumed="",
        )
        self.check()
        if done.exit_code:
            raise PodperfError(f"VPP gave no answer on {host.name} in {START_TIMEOUT:.0f} s")
        loaded = self._plugins()
        if loaded and not any(MEMIF in line for line in loaded):
            raise PodperfError(f"VPP on {host.name} has not loaded {_WITHOUT_MEMIF}")
        # The main thread must answer also if it shares its CPU with the poller of a pod.
        host.do("renice", "--priority", "-20", "--pid", str(self.process.pid))

    def check(self) -> None:
        """Raises PodperfError if VPP has ended, with its last message."""
        if not self.process.alive():
            said = _COLOUR.sub("", self.process.errors()).strip().splitlines()
            raise PodperfError(f"VPP has ended on {self._host.name}{''.join(f': {line}' for line in said[-1:])}")

    def pollers(self) -> dict[int, list[int]]:
        """The threads that forward, by CPU: the worker threads, or the main thread if there are none."""
        workers = threads_named(self._host, "vpp_wk", of=self.process.pid, assumed=len(self._workers))
        if not workers:
            return {self._main: [self.process.pid]}
        return {cpu: [thread] for cpu, thread in zip(self._workers, workers, strict=True)}

    def cpu_user(self) -> CpuUser:
        """The threads that forward. They poll, and VPP does not tell the cycles in which it polled in vain."""
        return CpuUser("VPP", self._host, lambda: [each for found in self.pollers().values() for each in found], True)

    def ask(self, question: str) -> list[str]:
        self.check()
        return _lines(self._host.ask(*self._command_line(question), timeout=ANSWER_TIMEOUT, assumed=""))

    def do(self, command: str) -> list[str]:
        """Run a command that changes VPP. Returns the lines of the answer."""
        self.check()
        return _lines(self._host.do(*self._command_line(command), timeout=ANSWER_TIMEOUT))

    def _command_line(self, words: str) -> list[str]:
        return ["vppctl", "-s", self._socket, *words.split()]

    def configure(self, command: str) -> None:
        """Run a command that has no answer on success. Raises PodperfError with VPP's answer."""
        answer = self.do(command)
        if answer:
            raise PodperfError(f"VPP refused `{command}`: {' '.join(answer)}")

    def create(self, command: str, name: str) -> None:
        """Create the interface `name` by `command`, and bring it up."""
        answer = self.do(command)
        if answer not in ([], [name]):  # some commands answer with the name, others not at all
            raise PodperfError(f"VPP refused `{command}`: {' '.join(answer)}")
        self.configure(f"set interface state {name} up")

    def _plugins(self) -> list[str]:
        return [" ".join(line.split()[1:3]) for line in self.ask("show plugins") if "_plugin.so" in line]

    def describe(self) -> dict[str, Any]:
        """Versions, start-up file, threads, interfaces, and the counters since VPP's start."""
        return {
            "version": self.ask("show version")[0],
            "plugins": self._plugins(),
            "startup_conf": self.start_up.splitlines(),
            "threads": self.ask("show threads"),
            "rx_placement": self.ask("show interface rx-placement"),
            "interfaces": self.ask("show interface"),
            "memif": self.ask("show memif"),
            "runtime": parse_runtime(self.ask("show runtime")),
            "errors": self.ask("show errors"),
        }


def _lines(done: Completed) -> list[str]:
    return [line.rstrip() for line in _COLOUR.sub("", done.stdout).splitlines() if line.strip()]


def missing(host: Host) -> str | None:
    """The reason why this host has no VPP that pods can use, with the remedy, or None. Starts nothing."""
    if host.ask("which", "vpp", "vppctl", check=False, assumed="").exit_code:
        return f"VPP is not installed ({REMEDY})"
    if _has_plugins(host, "*_plugin.so") and not _has_plugins(host, MEMIF):
        return f"VPP is installed on {host.name} without {_WITHOUT_MEMIF}"
    return None


def drives_cards(host: Host) -> bool:
    return _has_plugins(host, "dpdk_plugin.so")


def _has_plugins(host: Host, pattern: str) -> bool:
    command = ("sh", "-c", _PLUGIN_FILES, "sh", f"vpp_plugins/{pattern}")
    return host.ask(*command, check=False, assumed=pattern).stdout != ""


def _dpdk_section(devices: Mapping[str, str], *, in_hugepages: bool) -> str:
    settings = [f"uio-driver {pci.FOR_USER_SPACE}", "no-tx-checksum-offload", *([] if in_hugepages else ["no-hugetlb"])]
    named = [f"dev {address} {{ name {name} }}" for name, address in devices.items()]
    return "\n".join(["dpdk {", *(f"  {each}" for each in (*named, *settings)), "}", ""])


def parse_runtime(lines: Sequence[str]) -> list[dict[str, Any]]:
    """`show runtime` as data: for each thread its vector rates, and the nodes that handled frames.

    Vectors are frames. `vectors_per_call` is the mean number of frames that a node handled in one call. The higher it
    is, the busier VPP was.
    """
    threads: list[dict[str, Any]] = [{"thread": "vpp_main", "rates": [], "nodes": {}}]  # VPP names no single thread
    for line in map(str.strip, lines):
        if line.startswith("Thread "):
            if threads[-1]["rates"]:
                threads.append({"rates": [], "nodes": {}})
            threads[-1]["thread"] = line
        elif line.startswith(("Time ", "vector rates ")):
            threads[-1]["rates"].append(line)
        elif (node := _NODE.match(line)) and int(node[4]):
            threads[-1]["nodes"][node[1]] = {
                "state": node[2],
                "calls": int(node[3]),
                "vectors": int(node[4]),
                "clocks_per_vector": float(node[6]),
                "vectors_per_call": float(node[7]),
            }
    return threads
