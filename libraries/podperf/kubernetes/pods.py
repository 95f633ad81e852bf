"""Waits for a pod, and finds the reason why it does not run."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from podperf.errors import PodperfError
from podperf.kubernetes.api import ApiError
from podperf.kubernetes.run_namespace import RunNamespace

START_TIMEOUT = 120.0  # seconds; the image may have to be fetched
ENDED_TIMEOUT = 5.0  # seconds for a cluster to know that a pod has ended
_LOOK_AGAIN = 0.2  # seconds
_WAITS_LONG, _LOOK_SELDOM = 30.0, 2.0  # seconds: a pod that waits for so long is looked at so seldom
_MOST_TOLD = 1000  # characters of one message, which a pod or another tenant can have written
_HOPELESS = {
    *(
        "ErrImageNeverPull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    ),
    *("ErrImagePull", "ImagePullBackOff"),
}


class PodDidNotStart(PodperfError):
    """A pod does not run, with the cause that the cluster gives."""

    def __init__(self, name: str, cause: str, events: Sequence[str]) -> None:
        super().__init__(f"pod {name} does not run: {cause}{_said(events)}")


def await_phase(
    place: RunNamespace, name: str, phase: str = "Running", timeout: float = START_TIMEOUT
) -> dict[str, Any]:
    """The pod when it runs, or has ended well (phase `Succeeded`).

    PodDidNotStart with the cause: at once if waiting is useless, else after `timeout`.
    """
    began = time.monotonic()
    while True:
        pod, waited = place.pod(name), time.monotonic() - began
        if pod["status"].get("phase") == phase:
            return pod
        cause, hopeless = why_not_running(pod)
        if hopeless or waited > timeout:
            raise PodDidNotStart(name, cause, place.events(name))
        time.sleep(_LOOK_SELDOM if waited > _WAITS_LONG else _LOOK_AGAIN)


def why_ended(place: RunNamespace, name: str) -> str | None:
    """The cause for the end of a pod that ran, with its last events. None if it runs."""
    try:
        pod = place.pod(name)
    except ApiError as error:
        if error.status != 404:
            raise
        cause = "somebody deleted or evicted it"
    else:
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]:
            return None
        deleted = "somebody deletes or evicts it" if "deletionTimestamp" in pod["metadata"] else ""
        cause = deleted or why_not_running(pod)[0]
    return cause + _said(place.events(name))


def first_ended(place: RunNamespace, names: Collection[str]) -> tuple[str, str] | None:
    """The first of these pods that has ended, and the cause. None if none has, or if the cluster does not answer.

    The cluster knows of an end after some seconds.
    """
    deadline = time.monotonic() + ENDED_TIMEOUT
    while True:
        for name in names:
            try:
                why = why_ended(place, name)
            except ApiError:
                return None  # the caller's first error says more
            if why is not None:
                return name, why
        if time.monotonic() > deadline:
            return None
        time.sleep(_LOOK_AGAIN)


def _said(events: Sequence[str]) -> str:
    return f"; events: {' | '.join(each[:_MOST_TOLD] for each in events[-3:])}" if events else ""


def why_not_running(pod: Mapping[str, Any]) -> tuple[str, bool]:
    """The reason why a pod does not run, and whether waiting is useless."""
    status = pod["status"]
    if status.get("phase") in {"Failed", "Succeeded"}:
        return f"{_reason(status)}{_ended(status)}" or f"it is {status['phase']}", True
    for each in status.get("containerStatuses", ()):
        waiting = each.get("state", {}).get("waiting")
        if waiting and waiting.get("reason") in _HOPELESS:
            return _reason(waiting), True
    for each in status.get("conditions", ()):
        if each["type"] == "PodScheduled" and each["status"] == "False":
            return f"no node takes it ({str(each.get('message', each.get('reason')))[:_MOST_TOLD]})", False
    return "it has not started yet", False


def _reason(status: Mapping[str, Any]) -> str:
    return ": ".join(str(status[key])[:_MOST_TOLD] for key in ("reason", "message") if status.get(key))


def _ended(status: Mapping[str, Any]) -> str:
    """How the containers of a pod ended."""
    ended = (each.get("state", {}).get("terminated") for each in status.get("containerStatuses", ()))
    return "; ".join(f"its program ended with exit code {each['exitCode']} ({_reason(each)})" for each in ended if each)
