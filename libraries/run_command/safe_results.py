"""Checks where root may write results. Robot Framework follows links, and another user could have made one there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from podperf.ownership import open_to_others, ways_to


def unsafe_results(options: Mapping[str, Any], files: Sequence[str]) -> str | None:
    """The reason why root must not write the files of these options of Robot Framework, or None.

    This function makes the folder of results before it examines the folder. So no other user can make it in between,
    for example in /tmp.
    """
    results = Path(options["outputdir"]).absolute()
    with suppress(OSError):  # Robot Framework reports the error
        results.mkdir(parents=True, exist_ok=True)
    for name in files:
        if (path := open_to_others(ways_to(results / str(options.get(name, ""))), os.environ)) is not None:
            return (
                f"another user owns {path}, or can write there, and could have root overwrite any file: "
                f"choose another --{name}"
            )
    return None
