"""The exec plug-ins of kubeconfigs, which fetch a login (client-go credential plug-ins).

The package kubernetes waits for them without an end. If one fails, it logs a line and goes on without a login, so that
the API server's "Unauthorized" is all that is left. kubectl ends with the reason. So does podperf.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from kubernetes.config import ConfigException, exec_provider, kube_config

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


class _NoLogin(ConfigException):  # type: ignore[misc]
    pass


def _demand_login(status: Mapping[str, Any]) -> Mapping[str, Any]:
    if not ("token" in status or {"clientCertificateData", "clientKeyData"} <= set(status)):
        raise _NoLogin
    return status


class _Plugin(exec_provider.ExecProvider):  # type: ignore[misc]
    """An exec plug-in. Its output may have a login, and no message quotes it. What it says, it says on standard error,
    as with kubectl."""

    def __init__(self, settings: Any, folder: str, cluster: object = None) -> None:
        super().__init__(settings, folder, cluster)
        self._hint = " ".join(str(settings.safe_get("installHint") or "").split())[:_MOST_TOLD]

    def run(self, previous_response: object = None) -> Mapping[str, Any]:
        forget_failure()
        try:
            login = _demand_login(super().run(previous_response))
        except Exception as error:
            name, (how, remedy) = self.args[0], self._failed(error)
            _of_this_thread.failure = f"the exec plug-in `{name}` of the kubeconfig {how}: {remedy}"
            raise
        return login

    def _failed(self, error: Exception) -> tuple[str, str]:
        """How the plug-in failed, and what the user can do."""
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
        super().__init__(*arguments, **{**options, "stderr": None}, start_new_session=self._alone)

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        try:
            said, _ = super().communicate(input, PLUGIN_SECONDS if timeout is None else timeout)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL) if self._alone else self.kill()
            self.wait()
            raise
        return said, ""
