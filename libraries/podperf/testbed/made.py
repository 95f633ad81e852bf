"""Builds systems under test between ports that the run makes: veth pairs between tester's and worker's namespaces."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, ExitStack

from podperf.cpu_plan import CpuPlan
from podperf.dataplanes.base import DataPlane, Worker, WorkerPort
from podperf.dataplanes.wire import Wire
from podperf.hosts.linux import add_veth, mac_address
from podperf.hosts.namespaces import add_namespace
from podperf.hosts.network_namespace import NetworkNamespace
from podperf.kernel.receive_threads import dedicate_receive_processing, receive_at_once
from podperf.model import Chain
from podperf.testbed.kernel_settings import apply_to_chain
from podperf.testbed.machines import ChainNeeds, Machines
from podperf.testbed.system_under_test import PartOfChain, SystemUnderTest, WorkerSite
from podperf.testers.base import Tester
from podperf.topology import Engine, PortSettings


def bare_path(machines: Machines, mtu: int, engine: Engine, name: str, undo: ExitStack) -> SystemUnderTest:
    """Two tester ports plugged into each other, in a namespace of this name.

    The sender's CPU also receives here. Foreign work could disturb a second CPU, and its loss would count as the
    tester's.
    """
    host = add_namespace(machines.tester_host, name, undo)
    add_veth(host, near="left", far="right", mtu=mtu)
    tester = undo.enter_context(_tester(machines, host, engine))
    path = Wire().between({"left": host, "right": host})
    return SystemUnderTest(Chain(Wire.name, 0), tester, [PartOfChain(path)], path.entries)


def set_up(
    machines: Machines, data_plane: DataPlane, chain: Chain, cpus: CpuPlan, needs: ChainNeeds, undo: ExitStack
) -> SystemUnderTest:
    """A chain on one worker, between new ports."""
    tester_host = add_namespace(machines.tester_host, "tester", undo)
    worker = _worker(machines, tester_host, cpus, needs, undo)
    tester = undo.enter_context(_tester(machines, tester_host, machines.topology.tester.engine))
    began = time.monotonic()
    running = data_plane.set_up(worker, chain, undo)
    seconds = time.monotonic() - began
    machine = machines.workers[0]
    if machine.settings.counts_instructions:
        apply_to_chain(machine.host, worker.host, machine.settings.counted)
    site = WorkerSite(machine.host, worker)
    part = PartOfChain(
        running, worker=machine.host.name, cpus=cpus.with_own([each.own_cpus for each in worker.started]), site=site
    )
    return SystemUnderTest(chain, tester, [part], running.entries, set_up_seconds=seconds)


def _tester(machines: Machines, host: NetworkNamespace, engine: Engine) -> AbstractContextManager[Tester]:
    return machines.tester(PortSettings("left", host.namespace), PortSettings("right", host.namespace), engine)


def _worker(
    machines: Machines, tester_host: NetworkNamespace, cpus: CpuPlan, needs: ChainNeeds, undo: ExitStack
) -> Worker:
    machine = machines.workers[0]
    host = add_namespace(machine.host, "worker", undo)
    for port in ("left", "right"):
        add_veth(
            machines.tester_host,
            near=port,
            near_namespace=tester_host.namespace,
            far=f"w-{port}",
            far_namespace=host.namespace,
            mtu=needs.mtu,
        )
    if machine.settings.counts_instructions:
        receive_at_once(host, "w-left", "w-right")  # a closed loop needs this
    else:
        # The SUT's CPUs do the work for frames that arrive at the worker, not the tester's CPUs.
        for port, cpu in (("left", cpus.receives_left), ("right", cpus.receives_right)):
            dedicate_receive_processing(host, f"w-{port}", cpu)
    machine.make_run_directory(undo)
    left, right = (
        WorkerPort(f"w-{port}", mac_address(host, f"w-{port}"), mac_address(tester_host, port))
        for port in ("left", "right")
    )
    return machines.worker(machine, host, left, right, cpus, needs)
