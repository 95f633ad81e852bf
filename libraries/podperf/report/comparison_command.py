"""Writes the report of a comparison, and tells its exit code."""

from __future__ import annotations

from pathlib import Path

from podperf.comparisons.result import ComparisonOutcome
from podperf.report.comparison_page import comparison_page
from podperf.report.files import write_report
from podperf.report.rounds_plot import changes_plot, figures_plot
from podperf.verdicts.before_after import VariantVerdict

SLOWER, UNDECIDED, INTERRUPTED = 3, 5, 130  # exit codes, those of `report --history` where it says the same


def write_comparison(result: ComparisonOutcome, folder: Path) -> Path:
    """Write `comparison-NAME.html` and `.json` into a results folder. Returns the path of the page."""
    return write_report(folder, f"comparison-{result.comparison.name}", result.to_json(), comparison_page(result))


def plots(result: ComparisonOutcome) -> list[str]:
    """The plots of the rounds, as SVG. None for exact figures."""
    return [] if result.exact else [each for each in (changes_plot(result), figures_plot(result)) if each]


def exit_code(result: ComparisonOutcome) -> int:
    """0: no variant is slower, and each has a verdict. Else the worst: slower, interrupted, undecided."""
    if result.verdict is VariantVerdict.SLOWER:
        return SLOWER
    if result.ended == "interrupted":
        return INTERRUPTED
    return UNDECIDED if result.verdict is VariantVerdict.UNDECIDED else 0
