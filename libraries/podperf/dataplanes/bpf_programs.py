"""The project's own BPF programs on a host's interfaces (sources in dataplanes/bpf, built by the set-up).

`tc` and `ip` load the programs, and bpftool writes the target interface into their maps. Nothing is pinned. So a
program and its map end with the interface, after any end of the run.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Host, json_answer, shell_script
from podperf.hosts.linux import ip_json, link_named
from podperf.hosts.programs import on_host

OBJECTS = Path(__file__).parents[3] / "build" / "bpf"
TC_REDIRECT, TC_PEER, XDP_REDIRECT = "tc_redirect", "tc_redirect_peer", "xdp_redirect"  # names of object files
# iproute2 leaves folders behind in the mounted BPF file system, so it gets a private one.
_LOADING = ("unshare", "--mount", "sh", "-c", 'mount -t bpf bpf /sys/fs/bpf && exec "$@"', "sh")
_FIND_BPFTOOL = shell_script("find_bpftool.sh", beside=__file__)
NATIVE, GENERIC, OFFLOADED = "native", "generic", "offloaded"
XDP_MODES = {1: NATIVE, 2: GENERIC, 3: OFFLOADED}  # XDP_ATTACHED_* of linux/if_link.h
_XDP_KEYWORDS = {NATIVE: "xdpdrv", GENERIC: "xdpgeneric", OFFLOADED: "xdpoffload"}  # of ip-link(8)


def missing(host: Host) -> str | None:
    """The reason why programs cannot be loaded here, or None."""
    objects = [OBJECTS / f"{name}.bpf.o" for name in (TC_REDIRECT, TC_PEER, XDP_REDIRECT)]
    unbuilt = [str(path) for path in objects if not path.exists()]  # here: each host is given those that exist here
    if unbuilt and host.ask("ls", *unbuilt, check=False, assumed="").exit_code:
        return "the BPF programs are not built; once: sudo ./podperf set-up"
    if host.ask("sh", "-c", _FIND_BPFTOOL, check=False, assumed="").exit_code:
        return f"bpftool is not installed on {host.name} (Debian package bpftool, Ubuntu package linux-tools-generic)"
    return None


def redirect_at_tc(host: Host, program: str, source: str, target: str) -> None:
    """Redirect frames that arrive at `source` to `target`, at the tc ingress hook."""
    attach_at_tc(host, OBJECTS / f"{program}.bpf.o", ("section", "tc"), source)
    _set_target(host, _tc_program(host, source)["id"], target)


def attach_at_tc(host: Host, file: Path, program: Sequence[str], source: str) -> None:
    """Attach a program of an object file to the tc ingress hook. `program` are the words of tc-bpf(8) that choose it.

    PodperfError, with the words of tc, if the kernel does not take the program.
    """
    host.do("tc", "qdisc", "add", "dev", source, "clsact")
    code = ("bpf", "direct-action", "object-file", on_host(host, file), *program)
    try:
        host.do(*_LOADING, "tc", "filter", "add", "dev", source, "ingress", *code)
    except CommandFailed as error:
        said = " ".join(error.output.split()) or f"exit code {error.exit_code}"
        if error.exit_code is None:
            said = f"tc did not end in {said}"
        raise PodperfError(f"the tc hook of {source} does not take {file.name}: {said}") from error


def attach_at_xdp(
    host: Host,
    file: Path,
    program: Sequence[str],
    source: str,
    modes: Sequence[str] = (NATIVE, GENERIC),
    assumed: str = "",
) -> None:
    """Attach a program of an object file to the XDP hook, in the first of `modes` that works.

    The driver may have the native hook. The kernel has the generic one for each interface.
    """
    refusals = []
    for mode in modes:
        if not (said := _load_at_xdp(host, source, mode, file, program, assumed)):
            return
        refusals.append(f"{mode}: {said}")
    raise PodperfError(f"the XDP hook of {source} does not take {file.name} ({'; '.join(refusals)})")


def programs_in(host: Host, file: Path) -> list[str]:
    """The sorted names of the programs that an object file has. Empty if bpftool cannot read it."""
    said = host.ask(_bpftool(host), "gen", "skeleton", on_host(host, file), check=False).stdout
    return sorted(re.findall(r"^\t+struct bpf_program \*(\w+);", said, re.MULTILINE))


def set_target(host: Host, source: str, target: str) -> bool:
    """Write an interface's index into the first entry of the map `target` that the program at `source` has.

    False if the program has no such map.
    """
    attached = _xdp_attached(host, source)
    program = attached["prog"] if attached else _tc_program(host, source)
    if _map_of(host, program["id"]) is None:
        return False
    _set_target(host, program["id"], target)
    return True


def redirect_at_xdp(
    host: Host, source: str, target: str, modes: Sequence[str] = (NATIVE, GENERIC), assumed: str = ""
) -> None:
    """Redirect frames that arrive at `source` to `target`, at the XDP hook, in the first of `modes` that works."""
    attach_at_xdp(host, OBJECTS / f"{XDP_REDIRECT}.bpf.o", ("section", "xdp"), source, modes, assumed)
    _set_target(host, _xdp_attached(host, source)["prog"]["id"], target)


def refusal(host: Host, interface: str, mode: str, assumed: str = "") -> str | None:
    """The kernel's reason against a program at this interface in this mode, or None. Loads a program and removes it."""
    said = _load_at_xdp(host, interface, mode, assumed=assumed)
    if not said:
        host.do("ip", "link", "set", "dev", interface, _XDP_KEYWORDS[mode], "off")
    return said


def _load_at_xdp(
    host: Host,
    interface: str,
    mode: str,
    file: Path = OBJECTS / f"{XDP_REDIRECT}.bpf.o",
    program: Sequence[str] = ("section", "xdp"),
    assumed: str = "",
) -> str | None:
    attach = ("ip", "link", "set", "dev", interface, _XDP_KEYWORDS[mode], "object", on_host(host, file), *program)
    done = host.do(*_LOADING, *attach, check=False, assumed=assumed)
    if not done.exit_code:
        return None
    # The last line of libbpf has only the path of the program.
    said = (line for line in done.stderr.splitlines() if not line.startswith("libbpf: failed to load object"))
    return " ".join(" ".join(said).split()) or f"exit code {done.exit_code}"


def describe_program(host: Host, interface: str) -> dict[str, Any]:
    """The kernel's description of the program on an interface: hook, mode, name, tag, and target interface."""
    attached = _xdp_attached(host, interface)
    if attached:
        hook, mode, program = "XDP", XDP_MODES.get(attached["mode"], "unknown"), attached["prog"]
    else:
        hook, mode, program = "tc ingress", "direct action", _tc_program(host, interface)
    known = bpftool_json(host, "prog", "show", "id", str(program["id"]))
    return {
        "hook": hook,
        "mode": mode,
        "program": known["name"],
        "tag": known["tag"],
        "instruction_bytes": {"bpf": known["bytes_xlated"], "native": known.get("bytes_jited", 0)},
        "target": _target(host, program["id"]),
    }


def _target(host: Host, program: int) -> str | None:
    """The interface whose index is in the map `target` of a program. None if there is no such map or interface."""
    found = _map_of(host, program)
    if found is None:
        return None
    entry = bpftool_json(host, "map", "dump", "id", str(found["id"]))[0]
    index = int.from_bytes(bytes(int(byte, 16) for byte in entry["value"][:4]), sys.byteorder)
    return next((link["ifname"] for link in ip_json(host, "link", "show") if link["ifindex"] == index), None)


def _tc_program(host: Host, interface: str) -> Mapping[str, Any]:
    question = ("tc", "-json", "filter", "show", "dev", interface, "ingress")
    said = host.ask(*question, assumed='[{"options": {"prog": {"id": 1}}}]').stdout
    programs = json_answer(host, " ".join(question), said or "[]", _programs_of)
    if not programs:
        raise PodperfError(f"on {host.name}, {interface} has no BPF program at its tc or XDP hook")
    return programs[0]


def _programs_of(filters: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [dict(each["options"]["prog"]) for each in filters if "prog" in each.get("options", {})]


def _xdp_attached(host: Host, interface: str) -> Mapping[str, Any]:
    """The mode of the XDP program, and its id and tag under `prog`. `{}` without a program."""
    return dict(link_named(host, interface, "-details", xdp={"mode": 1, "prog": {"id": 1}}).get("xdp", {}))


def _map_of(host: Host, program: int) -> Mapping[str, Any] | None:
    maps = bpftool_json(host, "prog", "show", "id", str(program), assumed={"map_ids": [1]}).get("map_ids", ())
    target = {"id": 1, "name": "target", "bytes_value": 4}
    shown = (bpftool_json(host, "map", "show", "id", str(each), assumed=target) for each in maps)
    return next((dict(each) for each in shown if each.get("name") == "target"), None)


def _set_target(host: Host, program: int, target: str) -> None:
    index = link_named(host, target)["ifindex"]
    found = _map_of(host, program)
    if found is None:
        raise PodperfError(f"on {host.name}, the BPF program {program} has no map `target`")
    value = [str(byte) for byte in int(index).to_bytes(int(found["bytes_value"]), sys.byteorder)]
    command = ("map", "update", "id", str(found["id"]), "key", "0", "0", "0", "0", "value", *value)
    host.do(_bpftool(host), *command)


def bpftool_json(host: Host, *arguments: str, assumed: Mapping[str, Any] | None = None) -> Any:
    answer = None if assumed is None else json.dumps(assumed)
    said = host.ask(_bpftool(host), "--json", *arguments, assumed=answer).stdout
    return json_answer(host, f"bpftool --json {' '.join(arguments)}", said, lambda answer: answer)


def _bpftool(host: Host) -> str:
    return host.ask("sh", "-c", _FIND_BPFTOOL, check=False, assumed="").stdout.strip() or "bpftool"
