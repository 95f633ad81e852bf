"""Keeps the objects of one run in a cluster: a namespace of its own, or an anchor in a given one, owns them.

Each object has the label of its run. The process of a run updates the anchor at intervals, which shows that the run is
alive. So `podperf clean` deletes the objects of killed runs, and no object of a run that is alive.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from secrets import token_hex
from typing import Any

from podperf.errors import PodperfError, Unavailable, understood
from podperf.frames import Address
from podperf.kubernetes import manifests, multus
from podperf.kubernetes.api import Api, ApiError

BEAT = 10.0  # seconds
GONE_TIMEOUT = 60.0  # seconds for a namespace to be gone
SERVICE_ACCOUNT_TIMEOUT = 10.0  # seconds
_LOOK_AGAIN = 0.2  # seconds
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PROCESSES = Path("/proc/self/ns/pid")


class RunNamespace:
    """The place of the pods of one run. It exists until `close`."""

    @understood("the cluster")
    def __init__(self, api: Api, given: str | None = None, key: str = "tester.settings") -> None:
        """Without a `given` namespace the run makes its own. Unavailable if it may not: `key` can name one."""
        self._api, self._key, self.run = api, key, token_hex(4)
        self.name = given or f"{manifests.PREFIX}{self.run}"
        self._own = given is None
        self._closed = threading.Event()
        if self._own:
            self._make()
        self._anchor = f"{manifests.ANCHOR}-{self.run}"
        self._beats = 0
        self._services: list[str] = []
        self._collections: set[str] = set()  # paths of kinds whose objects are deleted with one request
        try:
            made = api.ask("POST", self._path("configmaps"), manifests.anchor(self.run, self._alive()))
        except BaseException:
            self._delete_namespace()
            raise
        self.owners = manifests.owned_by(self._anchor, made["metadata"]["uid"])
        threading.Thread(target=self._beat, daemon=True).start()

    def _make(self) -> None:
        try:
            self._api.ask("POST", "/api/v1/namespaces", manifests.namespace(self.name, self.run))
        except ApiError as error:
            if error.status != 403:
                raise
            raise Unavailable(
                f"this login may not make a namespace for the run ({error.message}): name one in "
                f"{self._key}.namespace, with the rights of topologies/kubernetes/namespaced.yaml"
            ) from error

    def _path(self, kind: str, name: str | None = None) -> str:
        return f"/api/v1/namespaces/{self.name}/{kind}" + (f"/{name}" if name else "")

    def _alive(self) -> dict[str, str]:
        return {"machine": _machine(), "process": _process(os.getpid()), "beats": str(self._beats)}

    def _beat(self) -> None:
        while not self._closed.wait(BEAT):
            self._beats += 1
            with suppress(ApiError):  # the next request of the run says so
                self._api.ask("PATCH", self._path("configmaps", self._anchor), {"data": self._alive()})

    def start(self, manifest: Mapping[str, Any]) -> None:
        """Make a pod. PodperfError with the API server's reason, for example a quota or pod security.

        A new namespace takes pods when the cluster has made its service account, after a second or less.
        """
        deadline = time.monotonic() + SERVICE_ACCOUNT_TIMEOUT
        while True:
            try:
                self._api.ask("POST", self._path("pods"), manifest)
            except ApiError as error:
                if error.status != 403 or "service account" not in error.message or time.monotonic() > deadline:
                    raise
                time.sleep(_LOOK_AGAIN)
            else:
                return

    def start_service(self, manifest: Mapping[str, Any]) -> Address:
        """Make a Service. Returns its address (ClusterIP)."""
        made = self._api.ask("POST", self._path("services"), manifest)
        self._services.append(made["metadata"]["name"])
        return ip_address(made["spec"]["clusterIP"])

    def start_policy(self, manifest: Mapping[str, Any]) -> None:
        self._make_one("/apis/networking.k8s.io/v1", "networkpolicies", manifest)

    def delete_policies(self, label: str) -> None:
        """Delete the NetworkPolicies whose label of this name has the run as its value."""
        query = [("labelSelector", f"{label}={self.run}")]
        self._api.ask("DELETE", f"/apis/networking.k8s.io/v1/namespaces/{self.name}/networkpolicies", query=query)

    def define(self, manifest: Mapping[str, Any]) -> None:
        """Make a NetworkAttachmentDefinition. Unavailable if the cluster has no Multus."""
        try:
            self._make_one(multus.API_PATH, multus.PLURAL, manifest)
        except ApiError as error:
            if error.status != 404:
                raise
            raise Unavailable(
                f"{self._key}.attached_by is `multus`, and the cluster has none ({error.message})"
            ) from error

    def _make_one(self, group: str, kind: str, manifest: Mapping[str, Any]) -> None:
        """Make an object of a kind. `close` deletes all objects of the kind with one request."""
        path = f"{group}/namespaces/{self.name}/{kind}"
        self._collections.add(path)
        self._api.ask("POST", path, manifest)

    def pod(self, name: str) -> dict[str, Any]:
        """A pod, as the API server knows it now."""
        found: dict[str, Any] = self._api.ask("GET", self._path("pods", name))
        return found

    def pods(self) -> dict[str, dict[str, Any]]:
        """All pods of the run by their names, as the API server knows them now."""
        found = self._api.ask("GET", self._path("pods"), query=_of_run(self._anchor))["items"]
        return {each["metadata"]["name"]: each for each in found}

    def events(self, pod: str) -> list[str]:
        """The reasons and messages of a pod's events, the oldest first."""
        query = [("fieldSelector", f"involvedObject.name={pod}")]
        found = self._api.ask("GET", self._path("events"), query=query)["items"]
        return [f"{each.get('reason')}: {each.get('message')}" for each in found]

    def delete(self, pod: str) -> None:
        self._api.delete(self._path("pods", pod), seconds=1)

    def await_gone(self, pods: Collection[str]) -> None:
        """Wait until the nodes of deleted pods have given their CPUs back. PodperfError after 60 s in which none has
        gone."""
        for pod in pods:
            if not until(partial(self._is_gone, pod), GONE_TIMEOUT):
                raise PodperfError(f"pod {pod} of the cluster does not go away")

    def _is_gone(self, pod: str) -> bool:
        return not self._api.exists(self._path("pods", pod))

    def close(self) -> None:
        """Delete everything of this run, and wait until it is gone. Safe to repeat."""
        if self._closed.is_set():
            return
        self._closed.set()
        for service in self._services:
            self._api.delete(self._path("services", service))
        for path in self._collections:
            self._api.ask("DELETE", path, query=_of_run(self._anchor))
        remove(self._api, self.name, self._anchor, own=self._own)

    def _delete_namespace(self) -> None:
        if self._own:
            self._api.delete(f"/api/v1/namespaces/{self.name}")


def remove(api: Api, namespace: str, anchor: str, *, own: bool) -> None:
    """Delete the namespace of a run, or only the run's objects in it. PodperfError if they are there after 60 s."""
    _delete(api, namespace, anchor, own=own)
    _await_gone(api, namespace, anchor, own=own)


def _delete(api: Api, namespace: str, anchor: str, *, own: bool) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    for item in api.ask("GET", f"{path}/pods", query=_of_run(anchor))["items"]:
        api.delete(f"{path}/pods/{item['metadata']['name']}")  # at once: the cluster's own collection takes seconds
    api.delete(path if own else f"{path}/configmaps/{anchor}")


def _await_gone(api: Api, namespace: str, anchor: str, *, own: bool) -> None:
    path = f"/api/v1/namespaces/{namespace}"

    def gone() -> bool:
        return not (api.exists(path) if own else api.ask("GET", f"{path}/pods", query=_of_run(anchor))["items"])

    if not until(gone, GONE_TIMEOUT):
        raise PodperfError(f"{'namespace' if own else 'pods of run'} {namespace} of the cluster does not go away")


def _of_run(anchor: str) -> list[tuple[str, str]]:
    """The query that selects the objects of an anchor's run."""
    return [("labelSelector", f"{manifests.RUN}={anchor.removeprefix(f'{manifests.ANCHOR}-')}")]


def _is_own(api: Api, namespace: str, anchor: str) -> bool:
    """Whether the run of an anchor made the namespace.

    Everybody who may make a config map in a namespace can give it the name of an anchor. Only the labels of the
    namespace itself tell that podperf made it.
    """
    run = anchor.removeprefix(f"{manifests.ANCHOR}-")
    if namespace != f"{manifests.PREFIX}{run}":
        return False
    try:
        labels = api.ask("GET", f"/api/v1/namespaces/{namespace}")["metadata"].get("labels") or {}
    except ApiError as error:
        if error.status not in {403, 404}:
            raise
        return False
    return bool(manifests.labels(run).items() <= labels.items())


def until(true: Callable[[], bool], timeout: float) -> bool:
    """Wait until `true` answers True. False if it does not within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_AGAIN)
    return True


def _machine() -> str:
    """Where numbers of processes have the same meaning: the machine since its boot, and the namespace of processes.
    Containers on one machine differ in the latter."""
    return f"{_BOOT.read_text().strip()} {_PROCESSES.readlink()}"


def _process(number: int) -> str:
    """A process and its start time, in clock ticks since the boot (proc(5), field 22)."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return f"{number} {fields[19]}"


def lives_here(alive: Mapping[str, str]) -> bool | None:
    """Whether the process of an anchor lives. None if it is, or was, on another machine."""
    if alive.get("machine") != _machine():
        return None
    with suppress(OSError, ValueError, LookupError, AttributeError):  # anybody can have written the config map
        return _process(int(alive["process"].split()[0])) == alive["process"]
    return False


def forget_killed(api: Api, given: str | None = None) -> Iterator[str]:
    """Delete what killed runs left in a cluster, or in a given namespace of it. Yields what was deleted.

    A run on another machine is alive if it beats within 20 s.
    """
    found = {_place(each): each.get("data") or {} for each in _anchors(api, given)}
    unknown = {place for place, alive in found.items() if lives_here(alive) is None}
    dead = {place for place, alive in found.items() if lives_here(alive) is False}
    if unknown:
        time.sleep(2 * BEAT)
        later = {_place(each): each.get("data") or {} for each in _anchors(api, given)}
        dead |= {place for place in unknown if later.get(place) == found[place]}
    failures: list[str] = []  # one anchor of somebody else keeps no other run from being deleted
    going: dict[tuple[str, str], bool] = {}
    for place in sorted(dead):
        with _noted(failures):
            own = _is_own(api, *place)
            _delete(api, *place, own=own)
            going[place] = own
    for (namespace, anchor), own in going.items():
        with _noted(failures):
            _await_gone(api, namespace, anchor, own=own)
            yield f"namespace {namespace}" if own else f"pods of {anchor} in namespace {namespace}"
    if given is None:
        yield from _without_anchors(api, {place[0] for place in found})
    if failures:
        raise PodperfError("; ".join(failures))


@contextmanager
def _noted(failures: list[str]) -> Iterator[None]:
    try:
        yield
    except PodperfError as error:
        failures.append(str(error))


def _without_anchors(api: Api, with_anchors: set[str]) -> Iterator[str]:
    """Namespaces whose runs were killed before they made an anchor, more than 20 s ago."""
    query = [("labelSelector", f"{manifests.MANAGER}=podperf")]

    def bare() -> set[str]:
        names = {item["metadata"]["name"] for item in api.ask("GET", "/api/v1/namespaces", query=query)["items"]}
        return {name for name in names - with_anchors if name.startswith(manifests.PREFIX)}

    first = bare()
    if not first:
        return
    time.sleep(2 * BEAT)
    known = {_place(anchor)[0] for anchor in _anchors(api, None)}
    for name in sorted((first & bare()) - known):
        api.delete(f"/api/v1/namespaces/{name}")
        yield f"namespace {name}"


def _anchors(api: Api, given: str | None) -> list[dict[str, Any]]:
    where = "" if given is None else f"/namespaces/{given}"
    query = [("labelSelector", f"{manifests.MANAGER}=podperf")]
    found: list[dict[str, Any]] = api.ask("GET", f"/api/v1{where}/configmaps", query=query)["items"]
    return [each for each in found if each["metadata"]["name"].startswith(f"{manifests.ANCHOR}-")]


def _place(anchor: Mapping[str, Any]) -> tuple[str, str]:
    return anchor["metadata"]["namespace"], anchor["metadata"]["name"]
