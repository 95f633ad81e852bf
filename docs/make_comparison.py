"""Fills docs/comparison.md with the figures of a run: `.venv/bin/python docs/make_comparison.py RESULTS...`.

If a test has records in several runs, the latest record counts. The program writes the tables between the page's
markers, and a plot for each frame size into docs/images.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.errors import PodperfError
from podperf.metrics import RATE, rates
from podperf.report.bars import comparison
from podperf.report.cells import typeset
from podperf.report.conformance import latest_of
from podperf.report.facts import environment_facts
from podperf.report.results import Record, RunResults, explanation, noisy, read_runs, shown
from podperf.report.summary import figure_cell

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "comparison.md"
MODELS = ("kernel-space", "user-space", "ebpf")
SIZES = ("64B", "1518B")
FACTS = ("CPU", "Virtualisation", "Distribution", "Kernel", "Placement", "podperf")


def compared(records: Sequence[Record], size: str) -> list[Record]:
    """The records with figures for one direction and this frame size, by networking model, the fastest first."""
    found = [
        each
        for each in records
        if any(section.startswith("4.1.") for section in each["test"]["sections"])
        and each["networking_model"] in MODELS
        and each["results"].get("mrr")
        and each["traffic"]["frame"]["name"] == size
        and len(each["traffic"]["directions"]) == 1
    ]
    return sorted(found, key=lambda each: (MODELS.index(each["networking_model"]), each["chain"]["pods"], -mrr(each)))


def mrr(record: Record) -> float:
    """The MRR of a record, in frames/s."""
    return float(record["results"]["mrr"]["frames_per_second"])


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    lines = [list(heads), ["---"] * len(heads), *map(list, rows)]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines] + [""]


def figures(records: Sequence[Record]) -> list[str]:
    """One row for each chain. MRR is also a multiple of the MRR of the Linux bridge with the same number of pods."""
    bridges = {each["chain"]["pods"]: mrr(each) for each in records if each["chain"]["data_plane"] == "linux-bridge"}
    others = [each for each in shown(records) if each.quantity is not RATE]
    rows = []
    for record in records:
        chain = record["chain"]
        bridge = bridges.get(chain["pods"])
        rows.append(
            [
                record["networking_model"],
                f"`{chain['data_plane']}`",
                str(chain["pods"]),
                *(figure_cell(record, each) for each in rates()),
                f"{mrr(record) / bridge:.2g} x" if bridge else "-",
                *(figure_cell(record, each) for each in others),
                "noisy" if noisy(record) else "",
            ]
        )
    heads = (
        *("model", "data plane", "pods", *(each.head for each in rates()), "MRR, bridge = 1"),
        *(f"{each.head} {typeset(each.quantity.unit)}" for each in others),
        "",
    )
    return table(heads, rows)


def filled(runs: Sequence[RunResults]) -> str:
    """The text between the markers."""
    records = latest_of(runs)
    environment = environment_facts(next(each for each in reversed(records) if each["placement"]))
    days = " and ".join(dict.fromkeys(run.started[:10] for run in runs))
    lines = [f"Measured on {days}:", "", *(f"- {name}: {environment[name]}" for name in FACTS), ""]
    for size in SIZES:
        if shown := compared(records, size):
            plot = DOCS / "images" / f"comparison-{size}.svg"
            plot.parent.mkdir(exist_ok=True)
            plot.write_text(comparison(shown, f"{size} frames"), encoding="utf-8")
            lines += [f"### {size} frames, kpps", "", f"![{size}](images/{plot.name})", "", *figures(shown)]
    found = [(record, each) for record in records for each in record["findings"]]
    if found:
        rows = [[record["test"]["name"], each["verdict"], each["detail"]] for record, each in found]
        lines += ["### Findings", "", *table(("claim", "verdict", "measured"), rows)]
    skipped = [each for each in records if each["outcome"] == "skipped"]
    if skipped:
        rows = [[each["test"]["name"], explanation(each)] for each in skipped]
        lines += ["### Not measured here", "", *table(("test", "reason"), rows)]
    return "\n".join(lines)


def main() -> None:
    """Fill the page."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        runs, unread = read_runs([Path(each) for each in sys.argv[1:]])
        made = filled(runs)
    except PodperfError as error:
        sys.exit(str(error))
    for each in unread:
        print(f"not read: {each}", file=sys.stderr)
    page = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- begin: made by docs/make_comparison.py -->", "<!-- end -->"
    page = re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n\n{made}\n{end}", page, flags=re.DOTALL)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
