"""Builds the values of a topology from a file without problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podperf.cpu_lists import parse_cpu_list
from podperf.documents.yaml_document import Document
from podperf.model import BOTH_DIRECTIONS, Direction, FrameSize, VirtualFunctionSettings
from podperf.topology.settings import (
    MethodSettings,
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
from podperf.topology.tester_types import KindSettings


def build(document: Document, data: Mapping[str, Any], kind: KindSettings) -> Topology:
    """The topology of a document without problems. `data` has the document's content and the schema's defaults.

    `kind` has the settings that only the tester's type has.
    """
    tester, traffic, method = (data[key] for key in ("tester", "traffic", "method"))
    left, right = (_port(tester["ports"][side]) for side in ("left", "right"))
    both = traffic["directions"] == "bidirectional"
    return Topology(
        path=document.path,
        name=data["name"],
        description=data["description"].strip(),
        tester=TesterSettings(
            kind,
            _cpus(tester["cpus"]),
            left,
            right,
            tester.get("maximum_load"),
            _ssh(tester["ssh"]),
        ),
        workers=tuple(_worker(each, document.key(("workers", number))) for number, each in enumerate(data["workers"])),
        traffic=TrafficSettings(
            BOTH_DIRECTIONS if both else (Direction(traffic["directions"]),), int(traffic["flows"])
        ),
        method=MethodSettings(
            method["search"],
            int(method["mrr"]["trials"]),
            float(method["mrr"]["duration"]),
            float(method["patience"]),
        ),
        thresholds=tuple(map(_threshold, data["thresholds"])),
        pods=PodSettings(data["pods"]["runtime"]),
        labels={key: document.texts["labels", key] for key in data["labels"]},
        not_comparable=data["not_comparable"].strip(),
    )


def _port(settings: Mapping[str, str]) -> PortSettings:
    mac = settings.get("destination_mac")
    return PortSettings(
        settings.get("interface"),
        settings.get("namespace"),
        mac.lower() if mac is not None else None,
        settings.get("destination_address"),
    )


def _ssh(settings: Mapping[str, Any]) -> SshSettings:
    return SshSettings(
        settings.get("address"),
        int(settings["port"]),
        settings["user"],
        settings.get("key"),
        settings["known_hosts"],
        settings["login"],
    )


def _worker(settings: Mapping[str, Any], key: str) -> WorkerSettings:
    return WorkerSettings(
        settings["connection"],
        _cpus(settings["cpus"]),
        _cpus(settings["switch_cpus"]),
        settings["hugepages"] == "auto",
        _ssh(settings["ssh"]),
        _worker_port(settings["ports"]["left"]),
        _worker_port(settings["ports"]["right"]),
        _virtual_functions(settings["sriov"]),
        key,
    )


def _worker_port(settings: Mapping[str, str]) -> WorkerPortSettings | None:
    interface, pci = settings.get("interface"), settings.get("pci")
    if interface is None:
        return None
    return WorkerPortSettings(interface, pci.lower() if pci is not None else None, settings.get("driver"))


def _virtual_functions(settings: Mapping[str, Any]) -> VirtualFunctionSettings:
    number = None if settings["vfs"] == "auto" else int(settings["vfs"])
    vlan, queues = (int(settings[key]) for key in ("vlan", "queues"))
    return VirtualFunctionSettings(number, vlan, settings["trust"], settings["spoof_check"], queues)


def _cpus(setting: str | int) -> tuple[int, ...] | None:
    return None if setting == "auto" else parse_cpu_list(str(setting))


def _threshold(settings: Mapping[str, Any]) -> Threshold:
    return Threshold(
        metric=settings["metric"],
        unit=settings["unit"],
        minimum=settings.get("minimum"),
        maximum=settings.get("maximum"),
        data_plane=settings.get("data_plane"),
        pods=None if settings.get("pods") is None else int(settings["pods"]),
        frame=None if settings.get("frame") is None else FrameSize.parse(settings["frame"]),
    )
