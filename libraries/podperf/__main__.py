"""The commands `check`, `report`, `thresholds`, `clean`, `cluster` and `image`: `python -m podperf COMMAND …`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from podperf.errors import PodperfError
from podperf.terminal import to_nobody

# A module is imported when its command is called: `clean` must work where `report` cannot.
COMMANDS = {
    "check": "podperf.preflight.command",
    "report": "podperf.report.command",
    "thresholds": "podperf.report.thresholds_command",
    "clean": "podperf.cleanup",
    "cluster": "podperf.cluster.command",
    "image": "podperf.cluster.pod_image",
}


def main(arguments: Sequence[str]) -> int:
    """Run one command, and return its exit code: 1 after an error, 2 for an unknown command, 130 after Ctrl-C."""
    if not arguments or arguments[0] not in COMMANDS:
        print(f"usage: podperf {{{'|'.join(COMMANDS)}}} …", file=sys.stderr)
        return 2
    try:
        code: int = import_module(COMMANDS[arguments[0]]).main(arguments[1:])
        sys.stdout.flush()
    except PodperfError as error:
        print(f"podperf: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        to_nobody(sys.stdout)
        return 0
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
