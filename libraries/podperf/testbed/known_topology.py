"""Reads a topology file whose names podperf knows: data planes, pod runtimes and testers, also of other packages."""

from __future__ import annotations

from pathlib import Path

from podperf.dataplanes import DATA_PLANES
from podperf.hosts.ssh_login import take_password
from podperf.pods import POD_RUNTIMES
from podperf.testers import TESTERS
from podperf.topology import Topology, load_topology


def read_topology(file: Path | str) -> Topology:
    """The testbed of a topology file. PodperfError has a line for each problem, with file, line and key.

    The password in the environment is removed from there, also if the file is wrong.
    """
    take_password()
    return load_topology(file, DATA_PLANES, POD_RUNTIMES, TESTERS)
