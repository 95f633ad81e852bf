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


def build(document: Document, data: Mapping[str, Any]) -> Topology:
    """The topology of a document without problems. `data` has the document's content and the schema's defaults."""
    tester, traffic, method = (data[key] for key in ("tester", "traffic", "method"))
    left, right = (_port(tester["ports"][side]) for side in ("left", "right"))
    trex = tester["type"] == TrexSettings.type
    both = traffic["directions"] == "bidirectional"
    return Topology(
        path=document.path,
        name=data["name"],
        description=data["description"].strip(),
        tester=TesterSettings(
            _trex(tester["trex"]) if trex else SoftwareSettings(),
            "trex" if trex else tester["engine"],
            _cpus(tester["cpus"]),
            left,
            right,
            tester.get("maximum_load"),
            _ssh(tester["ssh"]),
        ),
        workers=tuple(_worker(document, each, number) for number, each in enumerate(data["workers"])),
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
        bpf_object=_bpf_object(document, data.get("bpf_object")),
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


def _trex(settings: Mapping[str, Any]) -> TrexSettings:
    server = settings.get("server")
    return TrexSettings(
        settings["address"],
        int(settings["port"]),
        int(settings["publisher_port"]),
        settings.get("client"),
        settings["interpreter"],
        int(settings["ports"]["left"]),
        int(settings["ports"]["right"]),
        _trex_server(server) if server is not None else None,
    )


def _trex_server(settings: Mapping[str, Any]) -> TrexServerSettings:
    devices, low_end = settings.get("devices"), settings["low_end"]
    return TrexServerSettings(
        settings["directory"],
        (devices[0].lower(), devices[1].lower()) if devices is not None else None,
        None if low_end == "auto" else low_end == "yes",
        tuple(settings["options"]),
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


def _worker(document: Document, settings: Mapping[str, Any], number: int) -> WorkerSettings:
    here = ("workers", number)
    return WorkerSettings(
        settings["connection"],
        _cpus(settings["cpus"]),
        _cpus(settings["switch_cpus"]),
        settings["hugepages"] == "auto",
        _ssh(settings["ssh"]),
        _worker_port(settings["ports"]["left"]),
        _worker_port(settings["ports"]["right"]),
        _virtual_functions(settings["sriov"]),
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
