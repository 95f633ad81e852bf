"""The journal of a machine: each change outside of a run's namespaces, and the way to take the change back.

An entry is on disk before the change is made. So the next start finds the changes of a killed run. Entries are taken
back in reverse order: the last change first. Nothing needs to know which changes there are.

Taking an entry back must do no harm if the change was never made, or is taken back already: a kill can come between the
entry and the change, and between the command that takes the change back and the removal of the entry.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any

from podperf.errors import PodperfError
from podperf.hosts.base import WRITTEN, Host
from podperf.hosts.linux import module_loaded, unloading

JOURNAL = "/run/podperf-journal"  # a folder with one file for each change; the names of the files are numbers
TIMEOUT = 60.0  # seconds; a driver may need time to release a device

_NUMBER = re.compile(r"[1-9][0-9]{0,17}")  # the name of an entry's file, as podperf gives it
Thing = Sequence[str]  # a command that succeeds for as long as a thing is there

_MARKED: set[str] = set()  # names of functions


@dataclass(frozen=True)
class NotedChange:
    """One change of a machine, and the way to take it back: a command, or a function of podperf."""

    changed: str
    command: Sequence[str] = ()
    of: Thing = ()  # the changed thing, if it can disappear; without the thing there is nothing to take back
    function: str = ""  # MODULE:NAME, which `takes_back` marks; it is called with the host and with `arguments`
    arguments: Mapping[str, Any] = field(default_factory=dict)
    in_namespace: bool = False  # the changed thing may be in a namespace of the run, and would end with the namespace


def takes_back(function: Callable[..., None]) -> Callable[..., None]:
    """Marks a function that an entry of a journal may name.

    No other function is called: a worker keeps its own journal, and could name any function of Python there.
    """
    _MARKED.add(_name_of(function))
    return function


def _name_of(function: Callable[..., None]) -> str:
    return f"{function.__module__}:{function.__name__}"


def existing_path(name: str) -> Thing:
    """A thing that has a path: a device in sysfs, a cgroup."""
    return ("test", "-e", name)


def existing_namespace(name: str) -> Thing:
    """A network namespace that has a name."""
    return ("ip", "-n", name, "link", "show", "dev", "lo")


def existing_interface(name: str, inside: str | None = None) -> Thing:
    """The interface `name` in the network namespace `inside`, or in the machine's own. It ends with its namespace."""
    return ("ip", *(("-n", inside) if inside else ()), "link", "show", "dev", name)


# Run by `sh -c` with the name of a namespace and a command.
_INSIDE = 'n=/run/netns/$1; shift; [ ! -e "$n" ] || set -- nsenter --net="$n" -- "$@"; exec "$@"'


def inside(namespace: str, *command: str) -> Sequence[str]:
    """A command for the network namespace of that name. When the namespace is gone, the command runs in the machine's
    own network, because the kernel puts the devices of a namespace there."""
    return ("sh", "-c", _INSIDE, "sh", namespace, *command)


class NotTakenBack(PodperfError):
    """Changes of a machine that could not be taken back."""

    def __init__(self, host: Host, failures: Sequence[str], in_namespace: bool) -> None:
        """`in_namespace`: what one of them changed may be in a namespace of the run, and would end with it."""
        super().__init__(f"on {host.name}, not everything is as it was before: {'; '.join(failures)}")
        self.in_namespace = in_namespace


class WayBack:
    """The changes of one set-up on one machine. They are taken back at the end of `undo`."""

    def __init__(self, host: Host, undo: ExitStack, journal: str = JOURNAL) -> None:
        self._host, self._journal = host, journal
        self._numbers: list[int] = []  # of this set-up's entries in the journal
        undo.callback(self._go_back)

    def note(self, changed: str, *command: str, of: Thing = ()) -> None:
        """Write the next change into the journal, with the command that takes it back.

        If `of` is gone when the command fails, nothing has to be taken back.
        """
        self._write(NotedChange(changed, command, of))

    def note_call(
        self,
        changed: str,
        function: Callable[..., None],
        arguments: Mapping[str, Any],
        *,
        in_namespace: bool = False,
        instead_of: int | None = None,
    ) -> int:
        """Write down a change that `function(host, **arguments)` takes back. `@takes_back` marks the function.

        Returns the number of the entry. `instead_of` is the number of an entry that this one replaces.
        """
        name = _name_of(function)
        assert name in _MARKED, name
        return self._write(NotedChange(changed, (), (), name, arguments, in_namespace), instead_of)

    def _write(self, change: NotedChange, number: int | None = None) -> int:
        if number is None:
            number = max(_numbers(self._host, self._journal), default=0) + 1
            self._numbers.append(number)
        self._host.put(as_entry(change), _file(self._journal, number))
        return number

    def _go_back(self) -> None:
        still = set(_numbers(self._host, self._journal))
        _take_back(self._host, self._journal, [number for number in self._numbers if number in still])


def unload_at_the_end(host: Host, module: str, undo: ExitStack) -> None:
    """Unload a module that the set-up is about to load, unless the module is there already."""
    if not module_loaded(host, module):
        WayBack(host, undo).note(f"the kernel's module {module}", "sh", "-c", unloading(module))


def keeps_journal(host: Host, journal: str = JOURNAL) -> bool:
    """Whether this process may change the journal of this machine. That needs root there."""
    return not host.ask("test", "-w", str(PurePosixPath(journal).parent), check=False).exit_code


def changes(host: Host, journal: str = JOURNAL) -> list[NotedChange]:
    """The changes of this machine that are not taken back yet, the oldest first.

    Entries that podperf cannot read are left out: `go_back` names them.
    """
    found = []
    for number in _numbers(host, journal):
        with suppress(OSError, ValueError):
            found.append(as_change(host.get(_file(journal, number))))
    return found


def go_back(host: Host, journal: str = JOURNAL) -> list[str]:
    """Take back all changes of this machine, the last one first. Returns what was changed.

    If a change cannot be taken back, podperf still takes back the others. NotTakenBack then names the remaining
    changes, and the journal keeps them. Without root, the changes are those of root's runs, and stay.
    """
    numbers = _numbers(host, journal)
    return _take_back(host, journal, numbers) if numbers and keeps_journal(host, journal) else []


def _take_back(host: Host, journal: str, numbers: Sequence[int]) -> list[str]:
    taken_back: list[str] = []
    failures: list[str] = []
    in_namespace = False
    for number in reversed(numbers):
        entry, file = b"", _file(journal, number)
        try:
            entry = host.get(file)
            change = as_change(entry)
        except FileNotFoundError:  # another process of podperf has taken this change back meanwhile
            continue
        except (OSError, ValueError):
            failures.append(f"{file} is no entry of podperf's journal: look at it, and delete it")
            in_namespace |= may_be_in_namespace(entry)
            continue
        if (why := _why_not(host, change, file)) is not None:
            failures.append(f"{change.changed} ({why})")
            in_namespace |= change.in_namespace
            continue
        host.do("rm", "-f", file)
        taken_back.append(change.changed)
    if failures:
        raise NotTakenBack(host, failures, in_namespace)
    if numbers:
        host.do("rmdir", "--ignore-fail-on-non-empty", journal, check=False)
    return taken_back


def _why_not(host: Host, change: NotedChange, file: str) -> str | None:
    """Take one change back, which this file of the journal describes. Returns the reason if that is not possible."""
    try:
        if change.function:
            function = _function(change.function)
            try:
                inspect.signature(function).bind(host, **change.arguments)
            except TypeError as error:
                return f"{file} is of another version of podperf: {error}"
            function(host, **change.arguments)
            return None
        done = host.do("timeout", f"{TIMEOUT:.0f}", *change.command, check=False, timeout=TIMEOUT + 5)
        if not done.exit_code or (change.of and host.ask(*change.of, check=False).exit_code):
            return None
    except PodperfError as error:
        return str(error)
    except Exception as error:  # an entry is written by others, and can hold values that no function foresees
        return f"{file} cannot be taken back: {type(error).__name__}: {error}"
    return done.stderr.strip() or f"exit code {done.exit_code}"


def _function(name: str) -> Callable[..., None]:
    module, _, function = name.partition(":")
    if module.startswith("podperf."):  # an import runs a module's code, so only podperf's own modules are imported
        with suppress(ImportError, TypeError, ValueError):
            import_module(module)
    if name not in _MARKED:
        raise PodperfError(f"this version of podperf has no {name}")
    found: Callable[..., None] = getattr(import_module(module), function)
    return found


def _numbers(host: Host, journal: str) -> list[int]:
    """The entries of the journal, the oldest first. A half-written file has no number as its name."""
    names = host.ask("ls", journal, check=False, assumed=WRITTEN).stdout.split()
    return sorted(int(name) for name in names if _NUMBER.fullmatch(name))


def _file(journal: str, number: int) -> str:
    return f"{journal}/{number}"


def as_entry(change: NotedChange) -> bytes:
    return json.dumps({name: value for name, value in asdict(change).items() if value}).encode()


def as_change(entry: bytes) -> NotedChange:
    """The change of an entry. ValueError if the entry is none."""
    try:
        change = NotedChange(**json.loads(entry))
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    sound = (
        isinstance(change.changed, str)
        and _words(change.command)
        and _words(change.of)
        and isinstance(change.function, str)
        and isinstance(change.arguments, dict)
        and isinstance(change.in_namespace, bool)
    )
    if not sound or not (change.command or change.function):
        raise ValueError("a value of the wrong type, or no way back")
    return change


def may_be_in_namespace(entry: bytes) -> bool:
    """True if the changed thing may be in a namespace of the run, also of an entry that is no `NotedChange` here."""
    with suppress(ValueError, RecursionError):
        found = json.loads(entry)
        return isinstance(found, dict) and bool(found.get("in_namespace"))
    return False


def _words(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
