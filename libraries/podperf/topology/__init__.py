"""Topology files: reads a file, and gives its content as values.

The JSON Schema beside the topologies has all keys, their meanings and their defaults.
"""

from podperf.topology.reading import SCHEMA_PATH, TopologyError, load_topology, topology_schema
from podperf.topology.settings import (
    CountedSettings,
    Engine,
    FileSettings,
    Hook,
    KernelSettings,
    MethodSettings,
    Moment,
    Place,
    PodSettings,
    PortSettings,
    SoftwareSettings,
    SshSettings,
    TesterSettings,
    TesterType,
    Threshold,
    Topology,
    TrafficSettings,
    TrexServerSettings,
    TrexSettings,
    WorkerPortSettings,
    WorkerSettings,
    WrongSetting,
)

__all__ = [
    "SCHEMA_PATH",
    "CountedSettings",
    "Engine",
    "FileSettings",
    "Hook",
    "KernelSettings",
    "MethodSettings",
    "Moment",
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
