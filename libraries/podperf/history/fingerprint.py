"""The facts that are equal in all records that a history compares. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from podperf.dataplanes import DATA_PLANES
from podperf.methods.presets import OWN_GOAL
from podperf.metrics import Metric
from podperf.model import CABLE, Chain, TrafficProfile
from podperf.records import Record

Fingerprint = Mapping[str, str]  # the parts by their names, in words

PARTS = (
    "cluster",
    "Kubernetes",
    "pod network",
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
    chain, traffic = record.chain, record.traffic
    further = record.environment.get("further_workers") or {}
    workers = {"": record.environment, **{f"{name}: ": each for name, each in further.items() if each}}
    link = record.link_bits_per_second
    on_workers: dict[str, list[str]] = {}
    for of, each in workers.items():
        for name, words in _of_a_worker(each):
            on_workers.setdefault(name, []).extend([f"{of}{words}"] if words else [])
    parts = {
        **dict.fromkeys(PARTS, ""),
        **{name: "; ".join(found) for name, found in on_workers.items()},
        "data plane": chain.data_plane if chain else "",
        "chain": _chain(chain) if chain else "workers 1",
        "hugepages": record.parameters.get("hugepage_size") or "",
        "frame": traffic.frame.name if traffic else "",
        "traffic": _words_of(traffic) if traffic else "",
        "link": f"{link:g} bit/s" if link else "",
        "placement": _placement(record),
        "tester": _chosen(record.tester, "name", "version", "engine"),
        "method": _method(record, metric),
        **dict(_of_a_cluster(record)),
    }
    return {name: parts[name] for name in PARTS if parts[name] and name not in ignored}


def _words_of(traffic: TrafficProfile) -> str:
    headers = f", {traffic.headers.words}" if traffic.headers.words else ""
    return f"{' and '.join(traffic.directions)}, flows {traffic.flows}{headers}"


def difference(old: Fingerprint, new: Fingerprint) -> str:
    """The differences in words: `kernel: 6.1.0 instead of 5.10.0`. Empty if there are none."""
    return "; ".join(
        f"{name}: {new.get(name, 'not known')} instead of {old.get(name, 'not known')}"
        for name in PARTS
        if old.get(name) != new.get(name)
    )


def _of_a_cluster(record: Record) -> Iterator[tuple[str, str]]:
    """The parts of a cluster, if the tester's ports are pods there. The CPUs of podperf's machine have no part in it.

    The address of the API server stands for a cluster whose UID is not known.
    """
    cluster = record.cluster
    if not cluster:
        return
    yield "cluster", str(cluster.get("uid") or cluster.get("server") or "")
    yield "Kubernetes", str(cluster.get("version") or "")
    known = ("name", "version", "mode", "encapsulation", "service_proxy", "service_proxy_mode")
    found = cluster.get("network") or {}
    yield "pod network", _words(**{name: found[name] for name in known if found.get(name)})
    pods = (record.tester.get("pods") or {}).values()
    for name, key in (("CPU", "cpu_model"), ("kernel", "kernel")):
        yield name, "; ".join(dict.fromkeys(str(pod[key]) for pod in pods if pod.get(key)))
    yield "placement", f"nodes {len({pod.get('node') for pod in pods})}"


def _of_a_worker(worker: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The parts of one worker. Its memory is in whole GiB, because two kernels can differ by a few pages."""
    known = {name: worker.get(name) or {} for name in ("platform", "cpu", "memory", "kernel", "mitigations")}
    names = ("model", "microcode", "sockets", "cores_per_socket", "threads_per_core")
    size, kernel = known["memory"].get("total_bytes"), known["kernel"]
    yield "machine", _chosen(known["platform"], "vendor", "product", "board", "virtualisation")
    yield "CPU", _chosen(known["cpu"], *names, "online", "isolated", "governor", "turbo")
    yield "memory", f"{size / _GIB:.0f} GiB" if size else ""
    yield "kernel", " ".join(str(kernel[key]) for key in ("release", "version") if kernel.get(key))
    yield "kernel command line", str(kernel.get("command_line") or "")
    yield "mitigations", _words(**known["mitigations"])


def _chosen(found: Mapping[str, Any], *names: str) -> str:
    return _words(**{name: found.get(name) for name in names})


def _placement(record: Record) -> str:
    """The CPUs of tester, system under test and switch. The pods have the other CPUs of the system under test.

    Records of earlier versions name a CPU of the switch also for a data plane without a switch.
    """
    found, kind = record.placement, DATA_PLANES.get(record.chain.data_plane) if record.chain else None
    if found is None:
        return ""
    own = record.roles[0].get("switch") if record.roles and (kind is None or kind.switch_has_cpus) else None
    pages = None if found.hugepages_of_mib is None else bool(found.hugepages_of_mib)
    return _words(
        tester=found.tester, sut=found.sut, shared=found.shared, apart=found.apart, switch=own, hugepages=pages
    )


def _method(record: Record, metric: Metric) -> str:
    """The method of the figure: number and length of trials, preset of a search, and which direction counts."""
    found = record.method(metric.method)
    preset = (found.get("preset") or {}) if isinstance(found.get("preset"), Mapping) else {}
    own = (goal.get("loss_ratio") for goal in preset.get("goals") or () if goal.get("name") == metric.label == OWN_GOAL)
    settings = {"loss_ratio": next(own, None)}
    settings |= {key: found.get(key) for key in ("trial_count", "trial_duration", "share", "of", "judged_by")}
    return _words(preset=preset.get("name"), adapted=preset.get("adapted") or None, **settings)


def _chain(chain: Chain) -> str:
    join = None if chain.join == CABLE else chain.join
    ends = str(chain.ends) if chain.ends.in_pods else None
    return _words(pods=chain.pods, forwarder=chain.forwarder, workers=chain.workers, join=join, ends=ends)


def _words(**values: Any) -> str:
    """`pods 1, forwarder kernel`. Unknown values are left out."""
    return ", ".join(f"{name.replace('_', ' ')} {_word(each)}" for name, each in values.items() if each is not None)


def _word(value: Any) -> str:
    return " ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)
