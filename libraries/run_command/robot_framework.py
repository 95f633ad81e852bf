"""Robot Framework in this process, so that signals reach it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from robot.run import RobotFramework

NOT_WRITTEN = 255  # Robot Framework's exit code for unexpected errors


class _Run(RobotFramework):  # type: ignore[misc]  # robot has no types
    """Robot Framework, but without a traceback if the output does not fit on the disk. `error` then has the cause."""

    error: OSError | None = None

    def main(self, datasources: Sequence[str], **options: Any) -> Any:
        try:
            return super().main(datasources, **options)
        except OSError as error:
            self.error = error
            return NOT_WRITTEN


def run_robot(sources: Sequence[str], options: dict[str, Any], say: Callable[[str], None]) -> int:
    """Run these suites, and return the exit code. If the output cannot be written, `say` gets the reason."""
    run = _Run()
    try:
        code: int = run.execute(*sources, **options)
    except (OSError, ValueError):  # Robot Framework closes the failed file a second time
        if run.error is None:
            raise
        code = NOT_WRITTEN
    if run.error is not None:
        say(
            f"podperf: Robot Framework could not write its output to {options['outputdir']} ({run.error.strerror}): "
            "there is no log and no xunit.xml; free some space and run again"
        )
    return code
