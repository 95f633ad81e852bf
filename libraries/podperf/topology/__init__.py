"""Topology files: what one says of a testbed, as values, and the way from the file to them.

The JSON Schema beside the topologies says which keys there are, what they mean and their defaults.
"""

from podperf.topology.reading import SCHEMA_PATH, TopologyError, load_topology, topology_schema
from podperf.topology.settings import (
    Engine,
    MethodSettings,
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
    "Engine",
    "MethodSettings",
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
