"""The facts that are equal in all records that a history compares. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from podperf.dataplanes import DATA_PLANES
from podperf.metrics import Metric
from podperf.records import Record

Fingerprint = Mapping[str, str]  # the parts by their names, in words

PARTS = (
    "machine",
    "CPU",
    "memory",
    "kernel",
    "kernel command line",
    "mitigations",
    "data plane",
    "chain",
    "hugepages",
    "frame",
    "traffic",
    "link",
    "placement",
    "tester",
    "method",
)
_GIB = 2**30


def fingerprint(record: Record, metric: Metric, ignored: Collection[str] = ()) -> Fingerprint:
    """The known parts of `PARTS`, without the `ignored` ones.

    Versions of packages, of podperf and of the distribution are no parts, because a user may test different versions.
    """
    chain, traffic = record["chain"] or {}, record["traffic"] or {}
    environment, tester = record["environment"] or {}, record["tester"] or {}
    further = environment.get("further_workers") or {}
    workers = {"": environment, **{f"{name}: ": each for name, each in further.items() if isinstance(each, Mapping)}}
    link = record["link_bits_per_second"]
    parts = {
        **{name: "; ".join(f"{of}{words}" for of, each in workers.items() if (words := read(each)))
           for name, read in _OF_A_WORKER.items()},
        "data plane": str(chain.get("data_plane", "")),
        "chain": _words(pods=chain.get("pods"), forwarder=chain.get("forwarder"), workers=chain.get("workers", 1)),
        "hugepages": str((record.get("parameters") or {}).get("hugepage_size") or ""),
        "frame": str(traffic["frame"]["name"]) if traffic else "",
        "traffic": f"{' and '.join(traffic['directions'])}, flows {traffic['flows']}" if traffic else "",
        "link": f"{link:g} bit/s" if link else "",
        "placement": _placement(record),
        "tester": _words(name=tester.get("name"), version=tester.get("version"), engine=tester.get("engine")),
        "method": _method(record, metric),
    }  # fmt: skip
    return {name: parts[name] for name in PARTS if parts[name] and name not in ignored}


def difference(old: Fingerprint, new: Fingerprint) -> str:
    """The differences in words: `kernel: 6.1.0 instead of 5.10.0`. Empty if there are none."""
    return "; ".join(
        f"{name}: {new.get(name, 'not known')} instead of {old.get(name, 'not known')}"
        for name in PARTS
        if old.get(name) != new.get(name)
    )


def _machine(worker: Mapping[str, Any]) -> str:
    platform = worker.get("platform") or {}
    return _words(**{key: platform.get(key) for key in ("vendor", "product", "board", "virtualisation")})


def _cpu(worker: Mapping[str, Any]) -> str:
    names = ("model", "microcode", "sockets", "cores_per_socket", "threads_per_core")
    cpu = worker.get("cpu") or {}
    return _words(**{key: cpu.get(key) for key in (*names, "online", "isolated", "governor", "turbo")})


def _memory(worker: Mapping[str, Any]) -> str:
    """The memory in whole GiB. Two kernels can differ by a few pages."""
    size = (worker.get("memory") or {}).get("total_bytes")
    return f"{size / _GIB:.0f} GiB" if size else ""


def _kernel(worker: Mapping[str, Any]) -> str:
    kernel = worker.get("kernel") or {}
    return " ".join(str(kernel[key]) for key in ("release", "version") if kernel.get(key))


def _command_line(worker: Mapping[str, Any]) -> str:
    return str((worker.get("kernel") or {}).get("command_line") or "")


def _mitigations(worker: Mapping[str, Any]) -> str:
    return _words(**(worker.get("mitigations") or {}))


_OF_A_WORKER = {
    "machine": _machine,
    "CPU": _cpu,
    "memory": _memory,
    "kernel": _kernel,
    "kernel command line": _command_line,
    "mitigations": _mitigations,
}


def _placement(record: Record) -> str:
    """The CPUs of tester, system under test and switch. The pods have the other CPUs of the system under test.

    Records of earlier versions name a CPU of the switch also for a data plane without a switch.
    """
    placement, chain = record["placement"] or {}, record["chain"] or {}
    kind = DATA_PLANES.get(str(chain.get("data_plane")))
    left_out = {"pods"} if kind is None or kind.switch_has_cpus else {"pods", "switch"}
    return _words(**{key: cpus for key, cpus in placement.items() if key not in left_out})


def _method(record: Record, metric: Metric) -> str:
    """The method of the figure: the number and length of trials, the preset of a search."""
    found = record["methods"].get(metric.method) or {}
    preset = (found.get("preset") or {}) if isinstance(found.get("preset"), Mapping) else {}
    settings = {key: found.get(key) for key in ("trial_count", "trial_duration", "share", "of")}
    return _words(preset=preset.get("name"), adapted=preset.get("adapted") or None, **settings)


def _words(**values: Any) -> str:
    """`pods 1, forwarder kernel`. Unknown values are left out."""
    return ", ".join(f"{name.replace('_', ' ')} {_word(each)}" for name, each in values.items() if each is not None)


def _word(value: Any) -> str:
    return " ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
