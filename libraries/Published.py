"""Keyword library: what others published, held against measurements."""

from __future__ import annotations

from robot.api.deco import keyword, library

from podperf import __version__
from podperf.verdicts.published import published_table
from Testbed import frame_size, measure_and_judge


@library(scope="GLOBAL", version=__version__, doc_format="MARKDOWN")
class Published:
    """Measures rows of a published result table beside each other, and judges whether they rank here as they did there.

    ```robotframework
    *** Test Cases ***
    VPP Memif Over OVS-DPDK
        Measure Order Of Figures    appendix_c_multi_pod    1518    vpp-memif S1    OVS-DPDK S1
    ```

    The tables are files in `resources/published/`, which name what is set up for each row. A verdict comes about as for
    the claims of the draft, see `docs/findings.md`; `docs/appendices.md` tells which tables there are.
    """

    @keyword
    def measure_order_of_figures(self, table: str, frame: str, *rows: str) -> None:
        """Measure `rows` of a `table` with this frame size; those whose published figures clearly differ are compared.

        The verdict becomes the test's message and does not fail it. Skipped, with the reason, when the testbed cannot
        offer a row.
        """
        measure_and_judge(published_table(table).order_of_figures(frame_size(frame), *rows))

    @keyword
    def measure_order_of_statement(self, table: str, statement: str, frame: str, *rows: str) -> None:
        """Measure `rows` of a `table`, the fastest first, as a `statement` of the document says in words."""
        measure_and_judge(published_table(table).order_of_statement(statement, frame_size(frame), *rows))

    @keyword
    def measure_order_of_frame_sizes(self, table: str, row: str, *frames: str) -> None:
        """Measure a `row` of a `table` with several frame sizes: with larger frames it should forward more bits."""
        measure_and_judge(published_table(table).order_of_sizes(row, *map(frame_size, frames)))
