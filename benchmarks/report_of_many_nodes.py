"""The time of one report of every pair of nodes of a large cluster. The records are copies of a real one.

Usage: `report_of_many_nodes.py RESULTS [NODES]`. RESULTS is the folder of a run in a cluster, whose first record with
pods is the pattern (topologies/kubernetes.yaml with `nodes: 2`). Each pair of NODES nodes, by default 200, gets a
folder with a copy. There the nodes have other names, and the rates are 0.95 to 1.05 times as high. The rates of the
pairs of one node are half as high. Exits with 1 if the report does not name this node as the slowest.
"""

from __future__ import annotations

import copy
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SLOW = "node7"


def pattern(results: Path) -> dict[str, Any]:
    """The first record whose tester was in pods."""
    for path in sorted((results / "records").glob("*.json")):
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if (found.get("tester") or {}).get("pods"):
            return found
    sys.exit(f"{results} has no record of a tester in pods")


def of_pair(record: dict[str, Any], pair: tuple[str, str], factor: float) -> dict[str, Any]:
    """A copy for a pair of nodes, with rates that are `factor` times as high."""
    made = copy.deepcopy(record)
    for side, node in zip(("left", "right"), pair, strict=True):
        made["tester"]["pods"][side]["node"] = node
    made["results"] = scaled(made["results"], factor)
    return made


def scaled(value: Any, factor: float) -> Any:
    """A value of JSON in which each number with the key `frames_per_second` is multiplied."""
    if isinstance(value, list):
        return [scaled(each, factor) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: each * factor if key == "frames_per_second" and isinstance(each, int | float) else scaled(each, factor)
        for key, each in value.items()
    }


def folders(record: dict[str, Any], nodes: int, place: Path) -> Iterator[str]:
    """Write the folders of all pairs. Yields their paths."""
    chance = random.Random(23)
    for pair in combinations((f"node{number}" for number in range(1, nodes + 1)), 2):
        factor = chance.uniform(0.95, 1.05) * (0.5 if SLOW in pair else 1)
        folder = place / f"cluster.{'.'.join(pair)}"
        (folder / "records").mkdir(parents=True)
        text = json.dumps(of_pair(record, pair, factor))
        (folder / "records" / f"{record['id']}.json").write_text(text, encoding="utf-8")
        yield str(folder)


def main(arguments: list[str]) -> int:
    """Print the figures."""
    nodes = int(arguments[1]) if len(arguments) > 1 else 200
    record = pattern(Path(arguments[0]))
    with tempfile.TemporaryDirectory() as place:
        paths = list(folders(record, nodes, Path(place)))
        output = Path(place) / "report"
        began = time.monotonic()
        command = [str(ROOT / "podperf"), "--no-install", "report", *paths, "--output", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began
        size = sum(each.stat().st_size for each in output.rglob("*") if each.is_file())
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"{nodes} nodes, {len(paths)} pairs with one record each: {seconds:.0f} s, {memory:.0f} MiB of memory, ", end=""
    )
    print(f"a report of {size / 1e6:.1f} MB")
    named = re.search(r"slowest of \d+ nodes: (\S+)", done.stdout)
    print(named[0] if named else done.stderr[-500:])
    return 0 if named and named[1] == SLOW else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
