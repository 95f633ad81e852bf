"""DPDK's testpmd as a pod's application: it polls the pod's devices and forwards between each two of them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal

from podperf.allocation import PodAllocation
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.kernel.thread_time import Cycles
from podperf.kernel.threads import threads_named
from podperf.pods.base import Pod
from podperf.pods.forwarders.base import ORDINARY_MTU, Share
from podperf.pods.forwarders.dpdk import START_TIMEOUT, DpdkApplication, command_line, spawn

Mode = Literal["io", "mac", "macswap"]
PROMPT = "testpmd> "
MARK = "end-of-answer"  # not a command of testpmd; its echo shows that the previous answer is complete
ANSWER_TIMEOUT = 30.0  # seconds, enough for an emulated CPU
# `CPU cycles/packet=140.00 (total cycles=14000 / total io packets=100) at 2600 MHz Clock`; since 23.03 `busy cycles`
_CYCLES = re.compile(r"(?:total|busy) cycles=(\d+) / .{0,200}? at (\d+) MHz")
_RECEIVED = re.compile(r"RX-packets: +[1-9]")
_DEVICE = re.compile(r"^(\d+) +(?:[0-9A-F]{2}:){5}[0-9A-F]{2} (\S+)", re.MULTILINE)  # a row of `show port summary all`
_COUNTS = re.compile(r"(RX|TX)-packets: (\d+) +\1-dropped: (\d+)")
_ETHERNET, _HEADROOM = 26, 128  # bytes of Ethernet with two tags and FCS, and before a frame in a buffer
# DPDK names a polling thread after its lcore: before 22.11, since 22.11, since 23.03.
POLLING_THREADS = ("lcore-worker", "rte-worker", "dpdk-worker")


@dataclass(frozen=True)
class Testpmd(DpdkApplication):
    """A running testpmd, which answers questions at its prompt."""

    __test__ = False  # not a pytest class

    def begin(self) -> None:
        try:
            self.ask("start", START_TIMEOUT)
        except PodperfError as error:
            raise PodperfError(f"testpmd did not start in {self.host.name}: {error}") from error
        self.settle()  # from now on the main thread only waits for questions

    def ask(self, question: str, timeout: float = ANSWER_TIMEOUT) -> list[str]:
        """The lines of testpmd's answer to this question. `timeout` is in seconds and holds for each line."""
        self.process.send(question)
        self.process.send(MARK)
        answer: list[str] = []
        while (line := self.process.receive(timeout, assumed=PROMPT + MARK)) != PROMPT + MARK:
            answer.append(line)
        self.process.receive(timeout, assumed="")  # testpmd's message that it does not know the command MARK
        asked = answer.index(PROMPT + question) if PROMPT + question in answer else -1
        return answer[asked + 1 :]

    def pollers(self) -> list[int]:
        lcores = next(each for each in self.command if each.startswith("--lcores="))
        *older, newest = POLLING_THREADS
        assumed = {**dict.fromkeys(older, 0), newest: lcores.count("@") - 1}
        return [
            thread
            for prefix, number in assumed.items()
            for thread in threads_named(self.host, prefix, of=self.process.pid, assumed=number)
        ]

    @property
    def cycles(self) -> Callable[[], Cycles | None]:
        """Asks for the cycles in which it had frames. The first question lets it count them from then on."""
        return self._cycles

    def _cycles(self) -> Cycles | None:
        self.ask("set record-core-cycles on")
        return parse_cycles(self.ask("show fwd stats all"), time.monotonic())

    def describe(self) -> dict[str, object]:
        """testpmd's command line, and its own description of its forwarding, devices and counters."""
        devices = [line for line in self.ask("show port summary all") if line]
        return {
            "command": list(self.command),
            "hugepages_of_mib": self.page_size(),
            "forwarding": [line for line in self.ask("show config fwd") if line],
            "devices": devices,
            "statistics": parse_statistics(devices, self.ask("show fwd stats all")),
        }


def parse_statistics(devices: Sequence[str], answer: Sequence[str]) -> dict[str, dict[str, int]]:
    """The answer to `show fwd stats all`: the frames of each device since testpmd's start, by the device's name.

    `devices` is the answer to `show port summary all`.
    """
    names = dict(_DEVICE.findall("\n".join(devices)))
    of_all_ports = "\n".join(answer).partition("Accumulated")[0]
    _, *by_port = re.split(r"Forward statistics for port (\d+)", of_all_ports)
    found: dict[str, dict[str, int]] = {}
    for number, text in zip(by_port[::2], by_port[1::2], strict=True):
        counts = found.setdefault(names.get(number, f"port {number}"), {})
        for side, crossed, dropped in _COUNTS.findall(text):
            word = {"RX": "received", "TX": "sent"}[side]
            counts |= {word: int(crossed), f"not_{word}": int(dropped)}
    return found


def parse_cycles(answer: Sequence[str], now: float) -> Cycles | None:
    """The answer to `show fwd stats all`, as seconds. `now` is a clock.

    Without frames there are no cycles in it. None if there are frames, but no cycles that podperf can read.
    """
    text = "\n".join(answer)
    found = _CYCLES.search(text)
    if found is not None:
        return Cycles(float(found[1]) / float(found[2]) / 1e6, now)
    return None if _RECEIVED.search(text) else Cycles(0.0, now)


@dataclass(frozen=True)
class TestpmdForwarder:
    """testpmd in one of its forwarding modes: `io` leaves frames unchanged, `mac` and `macswap` rewrite their MACs.

    `arguments` are additional arguments of testpmd itself.
    """

    __test__ = False

    mode: Mode
    arguments: tuple[str, ...] = ()

    @property
    def transparent(self) -> bool:
        return self.mode == "io"

    def missing(self, host: Host) -> str | None:
        if host.ask("which", "dpdk-testpmd", check=False, assumed="").exit_code:
            return "DPDK's testpmd is not installed (Debian package dpdk-dev)"
        return None

    def refused(self, allocation: PodAllocation) -> str | None:
        """None: testpmd takes all of it as arguments."""
        return None

    def launch(self, pod: Pod, devices: Sequence[str], share: Share, undo: ExitStack) -> Testpmd:
        own = share.allocation
        buffers = own.buffers * own.cpus
        arguments = [f"--total-num-mbufs={buffers}", f"--forward-mode={self.mode}", f"--nb-cores={own.cpus}"]
        if own.cpus > 1:  # each CPU polls one queue of each port
            arguments += [f"--rxq={own.cpus}", f"--txq={own.cpus}"]
        if own.descriptors is not None:
            arguments += [f"--rxd={own.descriptors}", f"--txd={own.descriptors}"]
        if share.mtu > ORDINARY_MTU:
            arguments += [f"--max-pkt-len={share.mtu + _ETHERNET}", f"--mbuf-size={share.mtu + _ETHERNET + _HEADROOM}"]
        arguments += ["--no-lsc-interrupt", *self.arguments, "-i"]
        arguments += ["--disable-link-check"]  # otherwise testpmd waits 9 s for the link of a peer that starts later
        command = command_line("dpdk-testpmd", pod, devices, arguments, share)
        return Testpmd(pod, spawn(pod, command, undo), command, share.cpu)
