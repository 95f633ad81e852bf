"""Builds the values of a topology from a file without problems."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from podperf.cpu_lists import parse_cpu_list
from podperf.documents.yaml_document import Document, Pointer
from podperf.model import BOTH_DIRECTIONS, Direction, FrameSize, VirtualFunctionSettings
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
            SshSettings(**tester["ssh"]),
        ),
        workers=tuple(_worker(document, each, number) for number, each in enumerate(data["workers"])),
        traffic=TrafficSettings(BOTH_DIRECTIONS if both else (Direction(traffic["directions"]),), traffic["flows"]),
        method=MethodSettings(
            method["search"],
            method["mrr"]["trials"],
            float(method["mrr"]["duration"]),
            float(method["patience"]),
        ),
        thresholds=tuple(map(_threshold, data["thresholds"])),
        pods=PodSettings(data["pods"]["runtime"], data["pods"]["settings"]),
        labels={key: document.texts["labels", key] for key in data["labels"]},
        bpf_object=_bpf_object(document, data.get("bpf_object")),
        not_comparable=data["not_comparable"].strip(),
        results_server=data["results"].get("server"),
    )


def _port(settings: Mapping[str, str]) -> PortSettings:
    return PortSettings(**_lower(settings, "destination_mac"))


def _lower(settings: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return {**settings, key: settings[key].lower()} if key in settings else settings


def _worker(document: Document, settings: Mapping[str, Any], number: int) -> WorkerSettings:
    here = ("workers", number)
    return WorkerSettings(
        settings["connection"],
        _cpus(settings["cpus"]),
        _cpus(settings["switch_cpus"]),
        settings["hugepages"] == "auto",
        SshSettings(**settings["ssh"]),
        _worker_port(settings["ports"]["left"]),
        _worker_port(settings["ports"]["right"]),
        _virtual_functions(**settings["sriov"]),
        document.key(here),
        _counted(document, (*here, "counted"), settings["counted"]),
    )


def _counted(document: Document, here: Pointer, settings: Mapping[str, Any]) -> CountedSettings:
    kernel = settings["kernel"]
    return CountedSettings(
        int(settings["seed"]),
        KernelSettings(
            kernel["package"],
            _path(document, kernel.get("image")),
            _path(document, kernel.get("modules")),
            kernel["words"],
        ),
        tuple(settings["packages"]),
        tuple(FileSettings(_beside(document, each["from"]), each["to"]) for each in settings["files"]),
        {
            cast(Place, place): {name: document.texts[*here, "sysctls", place, name] for name in values}
            for place, values in settings["sysctls"].items()
            if values
        },
        {
            cast(Place, place): tuple(_beside(document, each) for each in files)
            for place, files in settings["nftables"].items()
            if files
        },
        _path(document, settings.get("hook")),
    )


def _bpf_object(document: Document, settings: Mapping[str, Any] | None) -> BpfObjectSettings | None:
    if settings is None:
        return None
    file = _beside(document, settings["file"])
    return BpfObjectSettings(file, settings["hook"], settings.get("section"), settings.get("program"))


def _path(document: Document, path: str | None) -> str | None:
    return None if path is None else _beside(document, path)


def _beside(document: Document, path: str) -> str:
    """A path of the file: relative ones begin at the folder of the file."""
    return str(Path(document.path).parent / Path(path).expanduser())


def _worker_port(settings: Mapping[str, str]) -> WorkerPortSettings | None:
    return WorkerPortSettings(**_lower(settings, "pci")) if settings else None


def _virtual_functions(vfs: str | int, **others: Any) -> VirtualFunctionSettings:
    return VirtualFunctionSettings(None if vfs == "auto" else int(vfs), **others)


def _cpus(setting: str | int) -> tuple[int, ...] | None:
    return None if setting == "auto" else parse_cpu_list(str(setting))


def _threshold(settings: Mapping[str, Any]) -> Threshold:
    frame = settings.get("frame")
    return Threshold(**{**settings, "frame": None if frame is None else FrameSize.parse(frame)})
