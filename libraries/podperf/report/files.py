"""Writes a report: the page, and the same as data and as test cases."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from podperf.errors import PodperfError
from podperf.records.files import replace_file
from podperf.report.xunit import Case, xunit


def write_report(
    folder: Path, name: str, data: Mapping[str, Any], page: str, cases: Sequence[Case] | None = None
) -> Path:
    """Write `name`.json and `name`.html into a folder, and `name`.xml if there are test cases. Returns the path of the
    page. PodperfError if that fails.

    The folder must be no link, because the author of results can put a link beside them. So callers resolve the path of
    a folder that the user has named.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        inside = _opened(folder)
        try:
            here = Path(f"/proc/self/fd/{inside}")  # this folder, also if a link takes its place meanwhile
            replace_file(here / f"{name}.json", f"{json.dumps(data, indent=2)}\n".encode())
            if cases is not None:
                replace_file(here / f"{name}.xml", xunit(name, cases))
            replace_file(here / f"{name}.html", page.encode())
        finally:
            os.close(inside)
    except OSError as error:
        raise PodperfError(
            f"cannot write the report to {folder}: {error.strerror}; the records are untouched"
        ) from error
    return folder / f"{name}.html"


def _opened(folder: Path) -> int:
    if folder.is_symlink():
        raise OSError(errno.ELOOP, "it is a link; name another folder with --output")
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def write_file(path: Path, text: str) -> None:
    """Write a file, for which its folder must be there. A reader finds the old or the new text, whole."""
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise PodperfError(f"cannot write {path}: {error.strerror}; the records are untouched") from error
