"""Converts records of older versions of the schema to the present one. All old forms that are read are here. Pure.

Values that early records of version 1 lack have defaults in `podperf.records.recorded`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from podperf.model import Latency

_FREE = ("data_plane", "tester", "interfaces")  # descriptions, whose form is the component's
_WITHOUT_UNIT = ("minimum", "mean", "p50", "p90", "p99", "p99.9", "maximum")


def converted(document: dict[str, Any]) -> dict[str, Any]:
    """The document in the present version, if it is of version 1. What has no known form stays for the schema."""
    if document.get("schema_version") != 1:
        return document
    found = {key: value if key in _FREE else _renewed(key, value) for key, value in document.items()}
    if isinstance(old := document.get("placement"), dict) and old.get("switch") and not document.get("roles"):
        found["roles"] = [{"switch": old["switch"]}]
    for each in findings if isinstance(findings := found.get("findings"), list) else ():
        if isinstance(each, dict):
            each.setdefault("source", "")  # all claims were called the draft's
    return {**found, "schema_version": 2}


def _renewed(key: str, value: Any) -> Any:
    """A value of the record, with everything in it."""
    if isinstance(value, list):
        return [_renewed("", each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: _renewed(name, each) for name, each in value.items()}
    with suppress(AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError):
        if key == "latency":
            return _latency(found)
        if key == "placement":
            shared = [] if found.get("apart") else sorted({*found["tester"]} & {*found["sut"]})
            pages = {"hugepages_of_mib": 2 if found["hugepages"] else 0} if "hugepages" in found else {}
            found = {"shared": shared, **found, **pages}
            return {
                name: each for name, each in found.items() if name not in {"hugepages", "switch", "pods"}
            }  # roles has those
        if "worker" in found and "stolen_ratio" in found:  # each worker had the next one in its `worker`
            worker = found.pop("worker")
            further = worker.pop("workers", [])
            return {**found, "workers": [worker, *further]}
        if "hugepages_kib" in found:
            held = found.pop("hugepages_kib")
            found["hugepages_mib"] = {f"{int(size) / 1024:g}": amount / 1024 for size, amount in held.items()}
        if "page_bytes" in found:
            found["of_mib"] = found.pop("page_bytes") / 2**20
    return found


def _latency(old: dict[str, Any]) -> dict[str, Any]:
    """Some names had no unit, and the latency of a trial had no percentiles."""
    found = {f"{name.replace('.', '_')}_ns" if name in _WITHOUT_UNIT else name: each for name, each in old.items()}
    if "counts" in found:
        counts = {int(index): count for index, count in found["counts"].items()}
        latency = Latency(found["minimum_ns"], found["mean_ns"], found["maximum_ns"], counts)
        return {**latency.as_record(), "counts": found["counts"]}
    return found
