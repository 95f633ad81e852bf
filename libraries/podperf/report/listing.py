"""`podperf report RESULTS --listing FUNCTION`: the instructions of a function, and how often a frame runs each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from podperf.errors import ExitCode, PodperfError
from podperf.methods.functions import instructions
from podperf.nearness import proposal
from podperf.printable import printable
from podperf.records import Record
from podperf.report.cost_page import CountedCost, counted_costs
from podperf.report.results import read_run

NO_DETAIL = "measure it with `counted: {detail: true}` in the topology (docs/counted.md)"
NO_WORDS = "(QEMU has no disassembler: its package was built without capstone)"


def report_listing(folders: Sequence[Path], function: str) -> int:
    """Print the function in each test of these runs. Returns the exit code. PodperfError if no test has it."""
    runs = [read_run(each, trials=False) for each in folders]
    found = [lines for run in runs for record in run.records for lines in _of_record(record, function)]
    if not found:
        costs = [cost for run in runs for record in run.records for cost in counted_costs(record)]
        names = list(dict.fromkeys(chain.from_iterable(cost.listings for cost in costs)))
        where = ", ".join(map(str, folders))
        if not names:
            raise PodperfError(f"{where}: no listing of functions; {NO_DETAIL}")
        raise PodperfError(f"{where}: no function {function} that ran{proposal(function, names)}")
    print(printable("\n\n".join(found)))
    return ExitCode.NOT_DONE if any(run.problems for run in runs) else ExitCode.FINE


def _of_record(record: Record, function: str) -> Iterator[str]:
    for cost in counted_costs(record):
        for name in cost.listings:
            if function in (name, name.partition(" [")[0]):
                yield "\n".join([f"{record.test.name}, {cost.in_flight}: {name}", *_lines(cost, name)])


def _lines(cost: CountedCost, name: str) -> Iterator[str]:
    listing = cost.listings[name]
    yield f"{'times a frame':>14}  {'address':<16}  instruction"
    for address, words, times in listing:
        yield f"{instructions(times):>14}  {address:<16x}  {words or NO_WORDS}"
    yield f"{instructions(sum(times for *_, times in listing)):>14}  {'':<16}  instructions a frame, with the bare path"
