"""Writes a report: the page, and the same as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podperf.errors import PodperfError
from podperf.records.files import replace_file


def write_report(folder: Path, name: str, data: Mapping[str, Any], page: str) -> Path:
    """Write `name`.json and `name`.html into a folder. Returns the path of the page. PodperfError if that fails."""
    html = folder / f"{name}.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / f"{name}.json", f"{json.dumps(data, indent=2)}\n".encode())
        replace_file(html, page.encode())
    except OSError as error:
        raise PodperfError(
            f"cannot write the report to {folder}: {error.strerror}; the records are untouched"
        ) from error
    return html


def write_file(path: Path, text: str) -> None:
    """Write a file, for which its folder must be there. A reader finds the old or the new text, whole."""
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise PodperfError(f"cannot write {path}: {error.strerror}; the records are untouched") from error
