"""Keyword library: compares published results of others with measurements."""

from __future__ import annotations

from robot.api.deco import keyword, library

from podperf import __version__
from podperf.verdicts.published_files import published_table
from Testbed import frame_size, measure_and_judge


@library(scope="GLOBAL", version=__version__, doc_format="MARKDOWN")
class Published:
    """Measures rows of a published result table by turns, and judges whether they rank here as in the publication.

    ```robotframework
    *** Test Cases ***
    VPP Memif Over OVS-DPDK
        Measure Order Of Figures    appendix_c_multi_pod    1518    vpp-memif S1    OVS-DPDK S1
    ```

    The tables are files in `resources/published/`. They name the chain of each row. `docs/appendices.md` lists the
    tables, and `docs/findings.md` explains the verdicts.
    """

    @keyword
    def measure_order_of_figures(self, table: str, frame: str, *rows: str) -> None:
        """Measure `rows` of a `table` with this frame size, and compare rows whose published figures clearly differ.

        The record and the report have the figure of each row beside the published one, in the published unit. An NDR is
        searched with the loss goal of the document. The verdict becomes the test's message and does not fail the test.
        If the testbed cannot set a row up, the test is skipped with the reason.
        """
        measure_and_judge(published_table(table).order_of_figures(frame_size(frame), *rows))

    @keyword
    def measure_order_of_statement(self, table: str, statement: str, frame: str, *rows: str) -> None:
        """Measure `rows` of a `table`. A `statement` of the document orders them; name the fastest row first."""
        measure_and_judge(published_table(table).order_of_statement(statement, frame_size(frame), *rows))

    @keyword
    def measure_order_of_frame_sizes(self, table: str, row: str, *frames: str) -> None:
        """Measure a `row` of a `table` with several frame sizes. Larger frames should give more bits per second."""
        measure_and_judge(published_table(table).order_of_sizes(row, *map(frame_size, frames)))
