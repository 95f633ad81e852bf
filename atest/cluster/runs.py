"""Rows, topologies and testers for runs on the cluster of a test."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

from own_cluster import KUBECONFIG
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.settings import IMAGE, KubernetesSettings
from podperf.kubernetes.tester import KubernetesTester
from robot_run import ROOT

SHORT_TRIALS = {"trials": 2, "duration": 0.3}
MODEST_LOAD = 1000  # frames/s, the least maximum of a topology; two runs beside each other deliver it on a busy machine
ONE_ROW = ("--test", "Pod to pod on one node, 64 B", str(ROOT / "tests"))
ROW_OF_NODE = ONE_ROW[1]
ROW_OF_POLICIES = ("--test", "Pod to pod on one node, 10 NetworkPolicies, 64 B", str(ROOT / "tests"))


def cluster_tester(kubeconfig: Path = KUBECONFIG, **settings: Any) -> closing[KubernetesTester]:
    """A tester in pods of the cluster, with these settings."""
    return closing(KubernetesTester(KubernetesSettings(PodWishes(IMAGE), str(kubeconfig), **settings)))


def topology(folder: Path, mrr: Mapping[str, float] | None = None, /, **settings: Any) -> Path:
    """The topology of the project, with further settings of the tester.

    A run with these trials of MRR sends few frames, so that it also measures well beside other runs.
    """
    content = yaml.safe_load((ROOT / "topologies/kubernetes.yaml").read_text())
    content["tester"]["settings"] |= {"kubeconfig": str(KUBECONFIG), **settings}
    content["method"]["mrr"] = dict(mrr or SHORT_TRIALS)
    if mrr is not None:
        content["tester"]["maximum_load"] = MODEST_LOAD
    path = folder / "cluster.yaml"
    path.write_text(yaml.safe_dump(content))
    return path
