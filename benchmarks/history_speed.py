"""How long the report of a history takes.

Makes up a history, and reports it. Measures nothing of a network. `history_speed.py [RECORDS]`, by default 2000, in runs
of 25 tests.

Exits with 1 if the report took more than 10 s of CPU time for 2000 records, or as much for each of more.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "libraries"), str(ROOT / "utest")]

import made_up
import made_up_history

from podperf.report.history_command import report_history

RECORDS, TESTS = 2000, 25
MOST_SECONDS = 10 / 2000  # for each record


def write(folder: Path, records: int) -> None:
    """Runs with a record of each test, with its trials, as podperf writes it."""
    planes = list(made_up_history.RATES)
    made = [
        made_up.forwarding_record(plane := planes[number % len(planes)], made_up_history.RATES[plane], seed=number)
        for number in range(TESTS)
    ]
    texts = []
    for number, (record, trials) in enumerate(made):
        record.id, record.name = f"{record.id}-{number}", f"{record.name}, {number}"
        texts.append((record.id, made_up.document(record, trials, folder / "template")))
    for run in range(-(-records // TESTS)):
        target = folder / "history" / f"run-{run:04}" / "records"
        target.mkdir(parents=True)
        for number, (name, document) in enumerate(texts[: records - run * TESTS]):
            rates = made_up_history.record(planes[number % len(planes)], run, 1.0, seed=number)
            changed = {**document, "started": rates["started"], "results": rates["results"]}
            (target / f"{name}.json").write_text(f"{json.dumps(changed, indent=2)}\n")


def seconds(records: int) -> float:
    """The CPU time of the report."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), records)
        began = time.process_time()
        report_history(Path(folder) / "history", None, None, ())
        return time.process_time() - began


def main(arguments: list[str]) -> int:
    """Print the time."""
    records = int(arguments[0]) if arguments else RECORDS
    taken = seconds(records)
    print(f"{records} records: {taken:.1f} s of CPU time")
    return 1 if taken > MOST_SECONDS * max(records, RECORDS) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
