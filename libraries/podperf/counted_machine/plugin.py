"""QEMU's plug-in that counts how often each block of instructions runs: whether this QEMU takes it, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from podperf.hosts.base import Host

LIBRARY = Path(__file__).parents[3] / "build" / "plugin" / "executions.so"
_REMEDY = "once: sudo ./podperf set-up virtual-worker"


@dataclass(frozen=True)
class Plugin:
    """The plug-in in a machine. It writes what it counts to `executions`, with `detail` if that is asked for. Without
    a plug-in, `missing` says why."""

    executions: Path | None = None
    missing: str | None = None
    detail: bool = False

    @property
    def words(self) -> list[str]:
        if self.executions is None:
            return []
        options = f"{_in_option(LIBRARY)},out={_in_option(self.executions)}"
        return ["-plugin", f"{options},detail=on" if self.detail else options]


def plugin_for(host: Host, qemu: str, folder: Path, *, detail: bool = False) -> Plugin:
    """The plug-in, if this QEMU takes it. It writes to a file in this folder, if asked in detail."""
    if host.ask("test", "-e", str(LIBRARY), check=False).exit_code:
        return Plugin(missing=f"QEMU's plug-in is not built; {_REMEDY}")
    probe = ("-machine", "none", "-nodefaults", "-display", "none", "-plugin", f"{_in_option(LIBRARY)},probe=on")
    tried = host.ask(qemu, *probe, check=False)
    if tried.exit_code:
        version = host.ask(qemu, "--version", check=False).stdout.partition("\n")[0] or qemu
        said = " / ".join(tried.stderr.splitlines()[-1:]) or f"it ended with exit code {tried.exit_code}"
        needed = "QEMU 9.1 or newer with plug-ins is needed"
        return Plugin(missing=f"{version} does not take podperf's plug-in, so {needed} ({said})")
    return Plugin(folder / "executions", detail=detail)


def _in_option(path: Path) -> str:
    """A path in an option of QEMU, where a comma ends a value and two are one."""
    return str(path).replace(",", ",,")
