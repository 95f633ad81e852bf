"""A listener that keeps the folder of results in order: `latest` is the newest run; with sudo the caller owns it."""

import os
from pathlib import Path
from typing import Any

from robot.libraries.BuiltIn import BuiltIn


class ResultsFolder:
    """Used by `podperf run` as `--listener ResultsFolder.py:FOLDER`; runs with output elsewhere are left alone."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder).resolve()
        self._run: Path | None = None

    def start_suite(self, data: Any, result: Any) -> None:
        if data.parent is not None:
            return
        run = Path(BuiltIn().get_variable_value("${OUTPUT DIR}")).resolve()
        if run.parent == self._folder:
            self._run = run
            self._point_at(run)

    def _point_at(self, run: Path) -> None:
        latest = self._folder / "latest"
        latest.unlink(missing_ok=True)
        latest.symlink_to(run.name)

    def close(self) -> None:
        """Last of all, after output, log, report and xunit files."""
        if self._run is None:
            return
        self._point_at(self._run)  # a second run that was refused meanwhile may have taken it
        if "SUDO_UID" in os.environ:
            owner, group = int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])
            for path in (self._folder, self._folder / "latest", self._run, *self._run.rglob("*")):
                os.chown(path, owner, group, follow_symlinks=False)
