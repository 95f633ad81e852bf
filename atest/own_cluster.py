"""The cluster of `podperf cluster up`, for the tests that need it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podperf.cluster.hierarchies import of_this_machine, processes
from podperf.cluster.layout import FOLDER
from podperf.cluster.lifecycle import GROUPS
from podperf.cluster.parts import are_ready
from podperf.hosts.local import LocalHost
from podperf.kubernetes.api import Api

KUBECONFIG = FOLDER / "kubeconfig"


def need_programs(*, multus: bool = False) -> None:
    """Skip the test unless the programs of the cluster are built, or are to be built. Unavailable if none can run."""
    if os.environ.get("PODPERF_CLUSTER") != "1" and not are_ready(LocalHost(), multus=multus):
        how = "cluster up --multus" if multus else "cluster up"
        pytest.skip(f"the programs of the cluster are not built: sudo ./podperf {how}, or PODPERF_CLUSTER=1")
    of_this_machine()


def process_of(program: str) -> int:
    """The process of the cluster whose name is this program's. Of several, the one that started first."""
    groups = [Path(line) for line in (FOLDER / GROUPS).read_text().splitlines()]
    return min(each for each in processes(groups) if Path(f"/proc/{each}/comm").read_text().strip() == program)


def namespaces(api: Api) -> set[str]:
    """The namespaces of the cluster that are not about to be gone."""
    found = api.ask("GET", "/api/v1/namespaces")["items"]
    return {each["metadata"]["name"] for each in found if each["status"]["phase"] == "Active"}
