"""Keyword library: what others published, held against measurements."""

from __future__ import annotations

from robot.api import logger
from robot.api.deco import keyword, library
from robot.libraries.BuiltIn import BuiltIn

from podperf import __version__
from podperf.errors import PodperfError
from podperf.model import FrameSize
from podperf.run import Run
from podperf.verdicts.published import PublishedOrder, published_table
from Testbed import running_test


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

    @property
    def _run(self) -> Run:
        run: Run = BuiltIn().get_library_instance("Testbed").run
        return run

    @keyword
    def measure_order_of_figures(self, table: str, frame: str, *rows: str) -> None:
        """Measure `rows` of a `table` with this frame size; those whose published figures clearly differ are compared.

        A row may end in `*`: all rows that begin so. The verdict becomes the test's message and does not fail it.
        Skipped, with the reason, when the testbed cannot offer a row.
        """
        self._judge(published_table(table).order_of_figures(_size(frame), *rows))

    @keyword
    def measure_order_of_statement(self, table: str, statement: str, frame: str, *rows: str) -> None:
        """Measure `rows` of a `table`, the fastest first, as a `statement` of the document says in words."""
        self._judge(published_table(table).order_of_statement(statement, _size(frame), *rows))

    @keyword
    def measure_order_of_frame_sizes(self, table: str, row: str, *frames: str) -> None:
        """Measure a `row` of a `table` with several frame sizes: with larger frames it should forward more bits."""
        self._judge(published_table(table).order_of_sizes(row, *map(_size, frames)))

    def _judge(self, order: PublishedOrder) -> None:
        finding = self._run.compare(running_test(), order)
        logger.info(f"{finding.claim!r}: {finding.detail}")
        BuiltIn().set_test_message(f"{finding.verdict}: {finding.detail}")


def _size(frame: str) -> FrameSize:
    try:
        return FrameSize.parse(frame)
    except ValueError as error:
        raise PodperfError(str(error)) from error
