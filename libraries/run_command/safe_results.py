"""Where root may write results: Robot Framework follows links, and another user could have put one there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from podperf.ownership import Owner, is_open_to_others, ways_to
from run_command.arguments import ROOT


def unsafe_results(options: Mapping[str, Any], files: Sequence[str]) -> str | None:
    """Why root must not write the files of these options of Robot Framework; None where nothing is to be said.

    The folder of the results is made before it is looked at: nobody else can make it in between, as in /tmp.
    """
    results = Path(options["outputdir"]).absolute()
    checkout = (ROOT, *ROOT.parents)  # who can change these has root do what he likes, whatever is written where
    caller = Owner.caller(os.environ)
    trusted = {Owner.of(each).user for each in checkout} | ({caller.user} if caller else set())
    with suppress(OSError):  # Robot Framework says so
        results.mkdir(parents=True, exist_ok=True)
    for name in files:
        for path in ways_to(results / str(options.get(name, ""))):
            if path not in checkout and is_open_to_others(path, trusted):
                return (
                    f"another user owns {path}, or can write there, and could have root overwrite any file: "
                    f"choose another --{name}"
                )
    return None
