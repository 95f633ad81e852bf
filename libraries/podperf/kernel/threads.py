"""Threads of a host: found by their names, the kernel's account of each, and receive threads pinned to CPUs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import cycle

from podperf.errors import PodperfError
from podperf.hosts.base import ASSUMED_NUMBERS, Host, shell_script
from podperf.hosts.linux import add_veth, write_attribute
from podperf.hosts.namespaces import add_namespace

_POLICIES = {0: "SCHED_OTHER", 1: "SCHED_FIFO", 2: "SCHED_RR", 3: "SCHED_BATCH", 5: "SCHED_IDLE", 6: "SCHED_DEADLINE"}
_THREADS_NAMED = shell_script("threads_named.sh", beside=__file__)


def threads_named(host: Host, prefix: str, of: int | None = None, assumed: int | None = None) -> list[int]:
    """The threads of the process `of` whose names start with `prefix`. Without `of`, threads of the kernel.

    `assumed` is the number of threads in a plan.
    """
    folder = f"/proc/{of}/task" if of is not None else "/proc"
    answer = None if assumed is None else " ".join(str(next(ASSUMED_NUMBERS)) for _ in range(assumed))
    said = host.ask("sh", "-c", _THREADS_NAMED, "sh", prefix, folder, assumed=answer).stdout
    return [int(each) for each in said.split()]


def held_to(host: Host, threads: Iterable[int]) -> list[str]:
    """The CPU lists on which these threads may run, read from the kernel. A thread that has ended is left out."""
    return sorted(set(_status(host, threads, "Cpus_allowed_list")))


def scheduling(host: Host, threads: Iterable[int]) -> list[str]:
    """The scheduling of these threads (sched(7)), read from the kernel: `SCHED_OTHER, nice 0`, `SCHED_RR, priority 1`.

    A thread that has ended is left out.
    """
    files = [f"/proc/{thread}/stat" for thread in threads]
    lines = host.ask("grep", "-h", "", "/dev/null", *files, check=False).stdout.splitlines()
    return sorted({_scheduling(line.rpartition(")")[2].split()) for line in lines})


def _scheduling(fields: Sequence[str]) -> str:
    """In words. `fields` are those of /proc/PID/stat behind the name, the third of proc(5) first."""
    nice, priority, policy = (int(fields[number - 3]) for number in (19, 40, 41))
    name = _POLICIES.get(policy, f"policy {policy}")
    return f"{name}, priority {priority}" if priority else f"{name}, nice {nice}"


def preemptions(host: Host, threads: Iterable[int]) -> list[int]:
    """The number of preemptions of each of these threads so far. A thread that has ended is left out."""
    return [int(count) for count in _status(host, threads, "nonvoluntary_ctxt_switches")]


def _status(host: Host, threads: Iterable[int], field: str) -> list[str]:
    """The value of this field of /proc/PID/status (proc(5)) for each thread."""
    files = [f"/proc/{thread}/status" for thread in threads]
    lines = host.ask("grep", "-h", f"^{field}:", "/dev/null", *files, check=False).stdout.splitlines()
    return [line.split()[1] for line in lines]


def dedicate_receive_processing(host: Host, interface: str, cpu: int, *further: int) -> None:
    """Let one CPU do all the work for frames that arrive at this veth, as an interrupt of a NIC would.

    With `further` CPUs, the threads of a NIC's queues are divided among all of them, in the order of their numbers.

    Without this, the sender's CPU does the receiver's work in the kernel. The load then adapts to the rate of this CPU,
    and no frame is lost. Threaded NAPI (kernel doc: networking/napi.rst) moves the work into a kernel thread. Like an
    interrupt, the thread has precedence over ordinary processes (sched(7)). Two such threads on one CPU take turns.
    """
    host.do("ethtool", "-K", interface, "gro", "on")  # gives a veth its NAPI context
    write_attribute(host, interface, "threaded", 1)
    threads, cpus = sorted(threads_named(host, f"napi/{interface}-", assumed=1)), (cpu, *further)
    # A thread of a removed interface with the same name may be among them. It may have ended by now.
    placed = zip(threads, cycle(cpus))
    refusals = [refusal for thread, own in placed if (refusal := _hold(host, thread, own))]
    if len(refusals) == len(threads):
        raise PodperfError(
            f"on {host.name}, the receive thread of {interface} cannot be held to CPU {cpu}: "
            f"{'; '.join(refusals) or _why_no_thread(host)}"
        )


def receive_at_once(host: Host, *interfaces: str) -> None:
    """Let the sender's CPU do all the work for a frame that arrives at these veths, before it sends the next one."""
    for interface in interfaces:
        host.do("ethtool", "-K", interface, "gro", "on")  # gives the veth a NAPI context, which receives XDP frames


def _hold(host: Host, thread: int, cpu: int) -> str | None:
    """Pin a thread to a CPU, with precedence over ordinary processes. Returns the reason of a refusal, or None."""
    for command in (("taskset", "--cpu-list", "--pid", str(cpu)), ("chrt", "--rr", "--pid", "1")):
        done = host.do(*command, str(thread), check=False)
        if done.exit_code:
            return " ".join(done.stderr.split()) or f"{command[0]} ended with exit code {done.exit_code}"
    return None


def _why_no_thread(host: Host) -> str:
    if threads_named(host, "kthreadd"):
        return "the kernel has no threaded NAPI for veth (Linux 5.12 or newer has)"
    return (
        "the kernel's threads are not to be seen in a container with process numbers of its own; run podperf with "
        "those of the host (docker run --pid=host; hostPID: true in a Kubernetes pod)"
    )


def refuse_unpinnable(host: Host, cpu: int) -> None:
    """Raises PodperfError with the remedy if the receive thread of a veth cannot be pinned to this CPU.

    The trial needs a namespace, which is removed afterwards. Call this under the run lock.
    """
    with ExitStack() as undo:
        probe = add_namespace(host, "probe", undo)
        add_veth(probe, near="probe-left", far="probe-right", mtu=1500)
        dedicate_receive_processing(probe, "probe-left", cpu)
