"""Topology files: reads a file, and gives its content as values.

The JSON Schema beside the topologies has all keys, their meanings and their defaults.
"""

from podperf.topology.reading import SCHEMA_PATH, TopologyError, load_topology, topology_schema
from podperf.topology.settings import (
    BpfObjectSettings,
    CountedSettings,
    FileSettings,
    KernelSettings,
    MethodSettings,
    Place,
    PodSettings,
    PortSettings,
    SshSettings,
    TesterSettings,
    Threshold,
    Topology,
    TrafficSettings,
    WorkerPortSettings,
    WorkerSettings,
)
from podperf.topology.tester_types import (
    Engine,
    KindSettings,
    SoftwareSettings,
    TesterType,
    TrexServerSettings,
    TrexSettings,
    WrongSetting,
)

__all__ = [
    "SCHEMA_PATH",
    "BpfObjectSettings",
    "CountedSettings",
    "Engine",
    "FileSettings",
    "KernelSettings",
    "KindSettings",
    "MethodSettings",
    "Place",
    "PodSettings",
    "PortSettings",
    "SoftwareSettings",
    "SshSettings",
    "TesterSettings",
    "TesterType",
    "Threshold",
    "Topology",
    "TopologyError",
    "TrafficSettings",
    "TrexServerSettings",
    "TrexSettings",
    "WorkerPortSettings",
    "WorkerSettings",
    "WrongSetting",
    "load_topology",
    "topology_schema",
]
