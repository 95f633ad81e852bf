"""Shell scripts in files beside the modules that run them, so that shellcheck can check them."""

from __future__ import annotations

from pathlib import Path


def shell_script(name: str, beside: str) -> str:
    """The text of a script for `sh -c`, without its comments. `beside` is the file of the module that runs it."""
    lines = Path(beside).with_name(name).read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
