"""A listener for the folder of results. It keeps the link `latest`, and gives the results to the caller of sudo."""

import json
import os
from pathlib import Path
from typing import Any

from robot.libraries.BuiltIn import BuiltIn

from podperf.ownership import Owner, hand_over, note_caller
from podperf.records.writer import TRIALS_SUFFIX


def measured(results: Path) -> bool:
    """Whether a test of the run in this folder has measured: a skipped test has a record, and no trials."""
    return any(map(_has_trials, (results / "records").glob("*")))


def _has_trials(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8")
        if path.name.endswith(TRIALS_SUFFIX):
            return len(text.splitlines()) > 1  # the first line is the record
        return path.suffix == ".json" and bool(json.loads(text)["trials"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False


class ResultsFolder:
    """Used by `podperf run`. `folder` holds the results of all runs. Runs with output in other places are ignored.

    `latest` points to the newest run that has measured. Under sudo, a run gives its own results to the caller, and no
    others.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder).resolve()
        self._run: Path | None = None
        self._caller = Owner.caller(os.environ)

    def start_suite(self, data: Any, result: Any) -> None:
        if data.parent is not None:
            return
        run = Path(BuiltIn().get_variable_value("${OUTPUT DIR}")).resolve()
        if run.parent != self._folder or not run.exists():  # a dry run has no results
            return
        self._run = run
        if self._caller is not None:
            note_caller(run, self._caller)
            if self._folder.stat().st_uid == 0:  # the first run made it
                Owner.of(self._folder.parent).take(self._folder)

    def end_test(self, data: Any, result: Any) -> None:
        latest = self._folder / "latest"
        if self._run is None or (latest.is_symlink() and latest.readlink().name == self._run.name):
            return
        if measured(self._run):
            latest.unlink(missing_ok=True)
            latest.symlink_to(self._run.name)
            if self._caller is not None:
                self._caller.take(latest)

    def close(self) -> None:
        """Robot Framework's listener interface. Called last, after output, log, report and xunit files."""
        if self._run is not None and self._caller is not None:
            hand_over(self._run, self._caller)
