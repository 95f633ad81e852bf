"""Topology files: reads a file, and gives its content as values.

The JSON Schema beside the topologies has all keys, their meanings and their defaults.
"""

from podperf.topology.reading import SCHEMA_PATH, TopologyError, load_topology, topology_schema
from podperf.topology.settings import (
    BpfObjectSettings,
    CountedSettings,
    Engine,
    FileSettings,
    KernelSettings,
    MethodSettings,
    Place,
    PodSettings,
    PortSettings,
    SoftwareSettings,
    SshSettings,
    TesterSettings,
    Threshold,
    Topology,
    TrafficSettings,
    TrexServerSettings,
    TrexSettings,
    WorkerPortSettings,
    WorkerSettings,
)

__all__ = [
    "SCHEMA_PATH",
    "BpfObjectSettings",
    "CountedSettings",
    "Engine",
    "FileSettings",
    "KernelSettings",
    "MethodSettings",
    "Place",
    "PodSettings",
    "PortSettings",
    "SoftwareSettings",
    "SshSettings",
    "TesterSettings",
    "Threshold",
    "Topology",
    "TopologyError",
    "TrafficSettings",
    "TrexServerSettings",
    "TrexSettings",
    "WorkerPortSettings",
    "WorkerSettings",
    "load_topology",
    "topology_schema",
]
