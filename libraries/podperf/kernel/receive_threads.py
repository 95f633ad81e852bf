"""The kernel's receive threads of veth pairs, each pinned to a CPU."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import cycle

from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.linux import add_veth, write_attribute
from podperf.hosts.namespaces import add_namespace
from podperf.kernel.threads import threads_named


def dedicate_receive_processing(host: Host, interface: str, cpu: int, *further: int) -> None:
    """Let one CPU do all the work for frames that arrive at this veth, as an interrupt of a NIC would.

    With `further` CPUs, the threads of a NIC's queues are divided among all of them, in the order of their numbers.

    Without this, the sender's CPU does the receiver's work in the kernel. The load then adapts to the rate of this CPU,
    and no frame is lost. Threaded NAPI (kernel doc: networking/napi.rst) moves the work into a kernel thread. Like an
    interrupt, the thread has precedence over ordinary processes (sched(7)). Two such threads on one CPU take turns.
    """
    host.do("ethtool", "-K", interface, "gro", "on")  # gives a veth its NAPI context
    write_attribute(host, interface, "threaded", 1)
    threads, cpus = sorted(threads_named(host, f"napi/{interface}-")), (cpu, *further)
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
