"""The time of one report of every pair of nodes of a large cluster. The records are copies of real ones.

Usage: `report_of_many_nodes.py RESULTS [NODES] [REPORT]`. RESULTS has the results of one pair of the Job of
topologies/kubernetes/job.yaml; `api_calls_of_a_pair.py` makes them. Each pair of NODES nodes, by default 200, gets a
folder with a copy of all records. There the testbed and the nodes have other names, and the rates are 0.95 to 1.05
times as high. The rates of the pairs of one node are half as high. The report goes to the folder REPORT, by default to
none that stays. Exits with 1 if the report does not name this node as the slowest. 200 nodes need 3 GB in TMPDIR.
"""

from __future__ import annotations

import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SLOW = "node7"
TRIALS = '\n  "trials": ['  # the trials are the end of a record


@dataclass(frozen=True)
class Pattern:
    """The text of a record, up to its trials and from there on. `nodes` are those of its pair."""

    name: str  # of its file
    head: str
    trials: str
    nodes: tuple[str, ...]

    def of_pair(self, pair: tuple[str, str], factor: float) -> str:
        """The text for another pair of nodes, with rates that are `factor` times as high."""
        names = dict(zip(self.nodes, pair, strict=True))
        head = re.sub("|".join(rf"\b{re.escape(each)}\b" for each in names), lambda found: names[found[0]], self.head)
        return (
            re.sub(r'(?<="frames_per_second": )[\d.e+]+', lambda rate: str(float(rate[0]) * factor), head) + self.trials
        )


def patterns(results: Path) -> list[Pattern]:
    """All records of a pair."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted((results / "records").glob("*.json"))}
    pods = next((found for text in texts.values() if (found := (json.loads(text)["tester"] or {}).get("pods"))), None)
    if pods is None:
        sys.exit(f"{results} has no record of a tester in pods")
    nodes = tuple(each["node"] for each in pods.values())
    parted = {name: text.partition(TRIALS) for name, text in texts.items()}
    return [Pattern(name, head, f"{trials}{rest}", nodes) for name, (head, trials, rest) in parted.items()]


def folders(records: Sequence[Pattern], nodes: int, place: Path) -> Iterator[str]:
    """Write the folders of all pairs. Yields their paths."""
    chance = random.Random(23)
    for pair in combinations((f"node{number}" for number in range(1, nodes + 1)), 2):
        factor = chance.uniform(0.95, 1.05) * (0.5 if SLOW in pair else 1)
        folder = place / f"cluster.{'.'.join(pair)}"
        (folder / "records").mkdir(parents=True)
        for each in records:
            (folder / "records" / each.name).write_text(each.of_pair(pair, factor), encoding="utf-8")
        yield str(folder)


def main(arguments: list[str]) -> int:
    """Print the figures."""
    nodes = int(arguments[1]) if len(arguments) > 1 else 200
    records = patterns(Path(arguments[0]))
    with tempfile.TemporaryDirectory() as place:
        paths = list(folders(records, nodes, Path(place)))
        output = Path(arguments[2]) if len(arguments) > 2 else Path(place) / "report"
        began = time.monotonic()
        command = [str(ROOT / "podperf"), "--no-install", "report", *paths, "--output", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began
        size = sum(each.stat().st_size for each in output.rglob("*") if each.is_file())
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{nodes} nodes, {len(paths)} pairs, {len(paths) * len(records)} records: {seconds:.0f} s, ", end="")
    print(f"{memory:.0f} MiB of memory, a report of {size / 1e6:.1f} MB")
    named = re.search(r"slowest of \d+ nodes: (\S+)", done.stdout)
    print(named[0] if named else f"{done.stdout[-500:]} {done.stderr[-500:]}")
    return 0 if named and named[1] == SLOW else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
