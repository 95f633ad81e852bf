"""Runs the exec plug-ins of kubeconfigs, which fetch a login (client-go credential plug-ins).

The package kubernetes waits for a plug-in without a time limit. If a plug-in fails, the package logs a line and goes on
without a login, and the only message is the API server's "Unauthorized". podperf ends with the reason, as kubectl does.

As root, podperf starts a plug-in as the user who wrote the kubeconfig.
"""

from __future__ import annotations

import os
import pwd
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kubernetes.config import ConfigException, exec_provider, kube_config

from podperf.closed_paths import only_writer

PLUGIN_SECONDS = 60.0  # a person may have to type a password
_REMEDY = "try `kubectl version` as the same user, which calls it, too"
_NO_CREDENTIAL = "no ExecCredential, which is JSON with a `status`"
_VERSION = re.compile(r"plugin api version (client\.authentication\.k8s\.io/\w{1,20}) does not match")
_ENDED = re.compile(r"process returned (-?\d+)")
_MOST_TOLD = 500  # characters of an installation hint
_of_this_thread = threading.local()


def limit_plugins() -> None:
    """Limit the time of the exec plug-ins that the package starts from now on, and note how they fail."""
    forget_failure()
    kube_config.ExecProvider = _Plugin
    kube_config.CommandTokenSource = _refuse_command
    kube_config.logging = SimpleNamespace(error=_note)
    exec_provider.subprocess = SimpleNamespace(Popen=_Process, PIPE=subprocess.PIPE)


def forget_failure() -> None:
    _of_this_thread.failure = ""


def plugin_failure() -> str:
    """The failure of the last exec plug-in of this thread, in words. Empty if there was none."""
    return str(getattr(_of_this_thread, "failure", ""))


def _note(_message: str) -> None:
    """Note that the package went on without the login of a plug-in. Its message may quote the login."""
    _of_this_thread.failure = plugin_failure() or (
        "the exec plug-in of the kubeconfig has no `command` or `apiVersion`, or its login has a wrong "
        "`expirationTimestamp`"
    )


def _refuse_command(*_: object) -> None:
    raise ConfigException("kubectl no longer starts the `cmd-path` of an `auth-provider`, nor does podperf: use `exec`")


@dataclass(frozen=True)
class _User:
    """The user as whom root starts a plug-in."""

    number: int
    group: int
    groups: tuple[int, ...]
    environment: Mapping[str, str]

    @classmethod
    def of(cls, number: int) -> _User:
        try:
            known = pwd.getpwuid(number)
        except KeyError:
            return cls(number, number, (), {})
        groups = tuple(os.getgrouplist(known.pw_name, known.pw_gid))
        home = {"HOME": known.pw_dir, "USER": known.pw_name, "LOGNAME": known.pw_name}
        return cls(number, known.pw_gid, groups, home)

    @property
    def called_sudo(self) -> bool:
        return os.environ.get("SUDO_UID") == str(self.number)


class _RefusedAsRoot(ConfigException):  # type: ignore[misc]
    pass


def _user_for(kubeconfig: str | None) -> _User | None:
    """The user who wrote a kubeconfig, if root is to start its plug-in. None: this process starts it as it is."""
    if os.geteuid() != 0 or kubeconfig is None:
        return None
    try:
        writer, others = only_writer(Path(kubeconfig))
    except OSError as error:
        raise _RefusedAsRoot(str(error)) from error
    if others is not None:
        raise _RefusedAsRoot(others)
    return _User.of(writer) if writer else None


_PASSED_ON = ("PATH", "LANG", "TERM", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")


class _NoLogin(ConfigException):  # type: ignore[misc]
    pass


def _demand_login(status: Mapping[str, Any]) -> Mapping[str, Any]:
    if not ("token" in status or {"clientCertificateData", "clientKeyData"} <= set(status)):
        raise _NoLogin
    return status


class _Plugin(exec_provider.ExecProvider):  # type: ignore[misc]
    """An exec plug-in. Its output may have a login, so no message quotes it. Its words for people go to standard error,
    as with kubectl."""

    def __init__(self, settings: Any, folder: str, cluster: object = None) -> None:
        super().__init__(settings, folder, cluster)
        self._kubeconfig, self._own = settings.path, settings.safe_get("env") or ()
        self._hint = " ".join(str(settings.safe_get("installHint") or "").split())[:_MOST_TOLD]

    def run(self, previous_response: object = None) -> Mapping[str, Any]:
        forget_failure()
        try:
            _of_this_thread.user = user = _user_for(self._kubeconfig)
            if user is not None:
                self.env = self._environment_of(user)
            login = _demand_login(super().run(previous_response))
        except Exception as error:
            name, (how, remedy) = self.args[0], self._failed(error)
            _of_this_thread.failure = f"the exec plug-in `{name}` of the kubeconfig {how}: {remedy}"
            raise
        return login

    def _environment_of(self, user: _User) -> dict[str, str]:
        """The environment of a plug-in that another user wrote. It does not tell that user what root's has."""
        kept = os.environ if user.called_sudo else {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return {**kept, **user.environment, **{each["name"]: each["value"] for each in self._own}}

    def _failed(self, error: Exception) -> tuple[str, str]:
        """How the plug-in failed, and what the user can do."""
        if isinstance(error, _RefusedAsRoot):
            return f"is not started by root, as others can change the kubeconfig ({error})", "run podperf without sudo"
        if isinstance(error, subprocess.TimeoutExpired):
            return f"gave no login in {PLUGIN_SECONDS:g} s", _REMEDY
        if isinstance(error, OSError):
            why = "is not found" if isinstance(error, FileNotFoundError) else f"does not start ({error.strerror})"
            return why, self._hint or "install it, and have it in PATH"
        if ended := _ENDED.search(str(error)):
            return f"failed with exit code {ended[1]}, and its own words are on standard error", _REMEDY
        if version := _VERSION.search(str(error)):
            return f"answers with {version[1]} in place of {self.api_version}", "correct `apiVersion` in the kubeconfig"
        neither = isinstance(error, _NoLogin)
        wrong = "neither a token nor a certificate with its key" if neither else _NO_CREDENTIAL
        return f"printed {wrong}", _REMEDY


class _Process(subprocess.Popen[str]):
    """The process of a plug-in. It and the processes that it started are killed if it takes too long."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._alone = not (sys.stdin and sys.stdin.isatty())  # otherwise it may ask the person at the terminal
        user: _User | None = getattr(_of_this_thread, "user", None)
        of_user = {} if user is None else {"user": user.number, "group": user.group, "extra_groups": user.groups}
        super().__init__(*arguments, **{**options, **of_user, "stderr": None}, start_new_session=self._alone)

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        try:
            said, _ = super().communicate(input, PLUGIN_SECONDS if timeout is None else timeout)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL) if self._alone else self.kill()
            self.wait()
            raise
        return said, ""
