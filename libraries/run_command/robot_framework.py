"""Robot Framework in this process, so that signals reach it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from robot.run import RobotFramework

NOT_WRITTEN = 255  # Robot Framework's exit code for what it did not expect


class _Run(RobotFramework):  # type: ignore[misc]  # which has no types
    """A run whose output may not fit on the disk: Robot Framework would show a traceback of its own."""

    error: OSError | None = None

    def main(self, datasources: Sequence[str], **options: Any) -> Any:
        try:
            return super().main(datasources, **options)
        except OSError as error:
            self.error = error
            return NOT_WRITTEN


def run_robot(sources: Sequence[str], options: dict[str, Any], say: Callable[[str], None]) -> int:
    """Run these suites; returns the exit code. `say` is told why the output could not be written."""
    run = _Run()
    try:
        code: int = run.execute(*sources, **options)
    except (OSError, ValueError):  # it closes, once more, the file that could not be written
        if run.error is None:
            raise
        code = NOT_WRITTEN
    if run.error is not None:
        say(
            f"podperf: Robot Framework could not write its output to {options['outputdir']} ({run.error.strerror}): "
            "there is no log and no xunit.xml; free some space and run again"
        )
    return code
