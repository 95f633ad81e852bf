"""How long tests took in earlier runs."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from podperf.closed_paths import read_regular

RUNS = 5  # the newest runs that are read
RECORDS = 1000  # records of each run that are read
HEAD = 1 << 14  # bytes that are read of a record; its trials, which may be megabytes, are at its end
_AFTER = '\n  "networking_model"'  # the field after the wanted ones


def earlier_durations(results: Path, topology_digest: str | None) -> dict[str, float]:
    """Seconds by test name: the median of the newest runs in `results` with the same topology.

    Unreadable records and interrupted tests are left out.
    """
    found: dict[str, list[float]] = {}
    with suppress(OSError):
        folders = [each for each in results.parent.glob("*/records") if each.parent.resolve() != results.resolve()]
        folders = list({each.resolve(): each for each in folders})  # results/latest is one of them
        for folder in sorted(folders, key=lambda each: each.stat().st_mtime, reverse=True)[:RUNS]:
            for path in islice(folder.glob("*.json"), RECORDS):
                with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
                    record = _head(path)
                    if record["outcome"] != "interrupted" and record["testbed"]["sha256"] == topology_digest:
                        found.setdefault(str(record["test"]["name"]), []).append(_seconds(record))
    return {name: median(each) for name, each in found.items()}


def _head(path: Path) -> Any:
    text = read_regular(path, HEAD).decode(errors="replace")
    head, separator, _ = text.partition(_AFTER)
    return json.loads(head.rstrip().removesuffix(",") + "}" if separator else text)


def _seconds(record: Any) -> float:
    started, ended = (datetime.fromisoformat(record[each]) for each in ("started", "ended"))
    if ended < started:
        raise ValueError("the clock was set back during the test")
    return (ended - started).total_seconds()
