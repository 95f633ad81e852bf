"""The pictures at the head of a section: rates by scenario, NUMA placement, chain length and density; methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podperf.report.chain_length_plot import chain_length_plot
from podperf.report.conformance import Conformance
from podperf.report.density_chart import density_charts
from podperf.report.html import NOTHING, Html, drawing, element
from podperf.report.method_plots import loss_curves, percentiles_by_load
from podperf.report.numa_grid import numa_grid
from podperf.report.results import Record
from podperf.report.scenario_bars import scenario_bars

_PICTURES = (chain_length_plot, scenario_bars, numa_grid, loss_curves, percentiles_by_load)


def section_pictures(records: Sequence[Record], conformance: Conformance) -> Iterator[Html]:
    """The pictures of these records of one section, those of each testbed by themselves. Nothing if none fits."""
    for testbed in dict.fromkeys(map(conformance.told_apart, records)):
        own = [each for each in records if conformance.told_apart(each) == testbed]
        drawn = [*(plot for picture in _PICTURES if (plot := picture(own))), *density_charts(own)]
        yield element("p", testbed) if testbed and drawn else NOTHING
        yield from (element("div", drawing(each), class_="scroll") for each in drawn)
