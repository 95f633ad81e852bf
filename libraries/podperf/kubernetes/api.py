"""Sends requests to the API server of a cluster. Answers are plain data (JSON), so newer servers may add fields."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podperf.errors import PodperfError, cause, understood
from podperf.http_login import HIDDEN, address, withheld

if TYPE_CHECKING:
    from podperf.http_login import HttpLogin  # its import takes a second, as that of kubernetes does

TIMEOUT = 10.0  # seconds for a connection, and for an answer that changes nothing
CHANGE_TIMEOUT = 40.0  # seconds for any other answer: the API server waits up to 30 s for a webhook, and then names it
_NO_KUBELET = "error dialing backend"  # the API server's words if it does not reach a kubelet
_SHORTEST_TOKEN = 16  # characters; a shorter one could be a word of Kubernetes
_MOST_TOLD, _MOST_QUOTED = 2000, 200  # characters of the server's message, and of an answer without one


class ApiError(PodperfError):
    """The API server refused a request, or did not answer, or was not asked, because there is no login (`status` 0)."""

    def __init__(self, what: str, status: int, message: str, how: str = "") -> None:
        """`how` the API failed: by default, it refused or did not answer, which the status tells."""
        how = how or ("refuses" if status else "does not answer")
        super().__init__(f"the Kubernetes API {how} `{what}`: {message}")
        self.status, self.message = status, message


class Api:
    """One login to one cluster."""

    def __init__(self, client: Any, where: str, namespace: str | None = None) -> None:
        """`client` is an ApiClient of the package kubernetes. `namespace` is that of the kubeconfig's context."""
        from podperf.http_login import by_proxy  # noqa: PLC0415 — its import takes a second
        from podperf.kubernetes.client import limit  # noqa: PLC0415

        self._client, self.where, self.namespace = client, by_proxy(where, client.configuration.proxy), namespace
        limit(client, TIMEOUT, CHANGE_TIMEOUT)

    def ask(self, method: str, path: str, body: object = None, query: Sequence[tuple[str, str]] = ()) -> Any:
        """One request. The answer is data. Raises ApiError with the server's message."""
        from kubernetes.client import ApiException  # noqa: PLC0415 — its import takes a second
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            answer = self._client.call_api(
                path,
                method,
                query_params=list(query),
                header_params={"Accept": "application/json", "Content-Type": kind},
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
            )
        except ApiException as error:
            raise self._refused(f"{method} {path}", error) from None
        except PodperfError as error:
            raise ApiError(f"{method} {path}", 0, str(error), "was not asked") from None
        except (HTTPError, OSError, ValueError) as error:
            raise ApiError(f"{method} {path}", 0, f"{self.where}: {cause(error)}") from None
        try:
            return json.loads(self._without_login(answer.data))
        except (ValueError, RecursionError) as error:  # for example a page of a proxy, or very deep nesting
            said = withheld(answer.data.decode(errors="replace"), self._login())[:_MOST_QUOTED]
            raise ApiError(f"{method} {path}", 0, f"{self.where} gave no valid answer: {said!r}") from error

    def exists(self, path: str) -> bool:
        """Whether there is an object at this path."""
        try:
            self.ask("GET", path)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    def delete(self, path: str, seconds: int = 0) -> None:
        """Delete an object with all objects that it owns. It may be gone already.

        With `seconds`, the pod is there until its node has ended it. The node kills its programs after this time.
        Without `seconds`, the pod is gone at once, and its node ends it later.
        """
        options = {"gracePeriodSeconds": seconds, "propagationPolicy": "Background"}
        try:
            self.ask("DELETE", path, options)
        except ApiError as error:
            if error.status not in {404, 409}:  # gone, or about to be
                raise

    def open_stream(self, pod: str, namespace: str, command: Sequence[str], *, stdin: bool = False) -> Any:
        """A WebSocket to a command that starts in a pod (`WSClient` of the package kubernetes)."""
        from kubernetes.client import ApiException, CoreV1Api  # noqa: PLC0415
        from kubernetes.stream import stream  # noqa: PLC0415

        # The package replaces a method of its client while it opens a WebSocket. So each one has a client of its own,
        # and several threads can open theirs at the same time.
        client = type(self._client)(self._client.configuration)
        call = CoreV1Api(client).connect_get_namespaced_pod_exec
        streams = {"stdin": stdin, "stdout": True, "stderr": True, "tty": False}
        began = time.monotonic()
        try:
            return stream(call, pod, namespace, command=list(command), _preload_content=False, **streams)
        except ApiException as error:
            raise self._not_opened(pod, namespace, error, time.monotonic() - began) from None

    def _not_opened(self, pod: str, namespace: str, error: Any, seconds: float) -> ApiError:
        """The error for a command that had not started after `seconds`. The API server asks the kubelet of the
        pod's node to start it."""
        from websocket import WebSocketBadStatusException  # noqa: PLC0415

        from podperf.kubernetes.client import LimitedWebSocket  # noqa: PLC0415

        what, reason = f"exec in pod {pod}", error.__context__  # the package keeps only its text
        if isinstance(reason, WebSocketBadStatusException) and reason.status_code >= 400:
            error.status, error.body = reason.status_code, reason.resp_body
        refused = self._refused(what, error)
        silent = not refused.status and seconds >= LimitedWebSocket.seconds
        if not silent and _NO_KUBELET not in refused.message:
            return refused
        if silent:
            return self.lost(pod, namespace, refused)
        return self._not_reached(what, refused.status, self._node_of(pod, namespace), refused.message)

    def lost(self, pod: str, namespace: str, error: Exception) -> ApiError:
        """The error for a command in a pod that no longer answers, which the API server and the kubelet pass on."""
        what = f"exec in pod {pod}"
        if (node := self._node_of(pod, namespace)) is not None:
            return self._not_reached(what, 0, node, "it answers other requests")
        # The API server itself is silent.
        return error if isinstance(error, ApiError) else ApiError(what, 0, f"{self.where}: {error or 'no connection'}")

    @staticmethod
    def _not_reached(what: str, status: int, node: str | None, why: str) -> ApiError:
        where = f"node {node}" if node else "the pod's node"
        why += f"; does the kubelet run on {where}, and does no firewall keep the API server from it?"
        return ApiError(what, status, why, f"does not reach the kubelet of {where} for")

    def _node_of(self, pod: str, namespace: str) -> str | None:
        """The node of a pod. None if the API server does not tell."""
        with suppress(PodperfError), understood(self.where):
            return str(self.ask("GET", f"/api/v1/namespaces/{namespace}/pods/{pod}")["spec"]["nodeName"])
        return None

    def _refused(self, what: str, error: Any) -> ApiError:
        """The error for an ApiException of the package kubernetes."""
        status = error.status or 0
        remark = self.expired() if status == 401 else ""
        message = withheld(_message(error.body) or str(error.reason)[:_MOST_TOLD], self._login())
        message = message if status else f"{self.where}: {message}"  # as of a request that nobody answers
        return ApiError(what, status, "; ".join(filter(None, (message, remark))))

    def expired(self) -> str:
        """The reason in words, if the login has expired. Otherwise empty."""
        from podperf.kubernetes.client import expired  # noqa: PLC0415

        configuration = self._client.configuration
        certificate = Path(configuration.cert_file).read_bytes() if configuration.cert_file else None
        return expired(certificate, self._header().rpartition(" ")[2], datetime.now(UTC))

    def _header(self) -> str:
        """The header `Authorization`. Empty for a login without it. A token of a pod may change with time."""
        return str(self._client.configuration.auth_settings().get("BearerToken", {}).get("value") or "")

    def _login(self) -> str:
        """The header or token of the newest request."""
        return str(self._client.configuration.api_key.get("authorization") or "").strip()

    def _without_login(self, content: bytes) -> bytes:
        """The content of an answer that quotes the login, for example as the name of a node, without the login."""
        word = self._login().rpartition(" ")[2].encode()
        return content.replace(word, HIDDEN.encode()) if len(word) >= _SHORTEST_TOKEN else content

    def http_login(self) -> HttpLogin:
        """The login for an HTTP session."""
        from podperf.http_login import HttpLogin  # noqa: PLC0415

        configuration = self._client.configuration
        certificate = (configuration.cert_file, configuration.key_file) if configuration.cert_file else None
        return HttpLogin(
            configuration.host,
            lambda: self._header() or None,
            configuration.verify_ssl and (configuration.ssl_ca_cert or True),
            certificate,
            configuration.tls_server_name,
            _proxies(configuration),
        )

    def close(self) -> None:
        self._client.close()


def log_in(kubeconfig: str | None, context: str | None) -> Api:
    """The cluster of a kubeconfig's context; of KUBECONFIG or ~/.kube/config by default; or that of the pod in which
    podperf runs. PodperfError if there is none of these."""
    from kubernetes import config  # noqa: PLC0415
    from yaml import YAMLError  # noqa: PLC0415

    from podperf.kubernetes.client import LoginConfiguration, keep_in_memory  # noqa: PLC0415
    from podperf.kubernetes.exec_plugins import limit_plugins, plugin_failure  # noqa: PLC0415
    from podperf.kubernetes.proxies import choose_proxy  # noqa: PLC0415

    limit_plugins()
    keep_in_memory()
    configuration = LoginConfiguration()
    files = kubeconfig or config.KUBE_CONFIG_DEFAULT_LOCATION or "~/.kube/config"  # an empty KUBECONFIG is none
    try:
        if kubeconfig is None and context is None and _in_a_pod():
            config.load_incluster_config(configuration)
            choose_proxy(configuration)
            return Api(_client(configuration), "the cluster of this pod", _namespace_of_this_pod())
        merged = config.kube_config.KubeConfigMerger(files)
        _refuse_missing(files, merged.config, context)
        loader = config.kube_config.KubeConfigLoader(
            merged.config, active_context=context, config_base_path=None, config_persister=merged.save_changes
        )
        loader.load_and_set(configuration)
        choose_proxy(configuration, loader._cluster.safe_get("proxy-url"))
        namespace = loader.current_context["context"].get("namespace")
    except (config.ConfigException, OSError, YAMLError, LookupError, TypeError, ValueError, AttributeError) as error:
        # Other errors quote the text that they refuse, which may be a token.
        why = str(error) if isinstance(error, config.ConfigException) else _where_wrong(files, error)
        raise PodperfError(
            f"no cluster: {' '.join(why.split())[:_MOST_TOLD]}; name a kubeconfig in KUBECONFIG or in "
            "tester.settings of the topology; to try one on this machine: sudo ./podperf cluster up --own"
        ) from None
    if failure := plugin_failure():
        raise PodperfError(f"no cluster: {failure}")
    return Api(_client(configuration), address(str(configuration.host)), namespace)


def _refuse_missing(files: str, merged: Any, context: str | None) -> None:
    """Raises OSError if none of the kubeconfigs is there, and PodperfError if they have no such context.

    `merged` is their content, or None. Without `context`, it is that of `current-context`.
    """
    if merged is None:
        for path in filter(None, files.split(os.pathsep)):
            Path(path).expanduser().stat()
    wanted, known = context or merged["current-context"], [each["name"] for each in merged["contexts"].value]
    if wanted not in known:
        raise PodperfError(
            f"no cluster: {files} has no context {wanted!r}; its contexts: {', '.join(map(str, known)) or 'none'}"
        )


def _where_wrong(files: str, error: Exception) -> str:
    """The fault of a kubeconfig, and the line if it is known."""
    from yaml import YAMLError  # noqa: PLC0415

    if isinstance(error, OSError):
        return f"{error.filename or files}: {error.strerror.lower() if error.strerror else error}"
    if not isinstance(error, YAMLError):  # for example a text, or a list in place of a mapping
        return f"{files} is no kubeconfig, which has `clusters`, `users` and `contexts`: see `kubectl config view`"
    mark = getattr(error, "problem_mark", None)
    return f"{files} is no kubeconfig, as it is no YAML{f' in line {mark.line + 1}' if mark else ''}"


_OF_THIS_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def _in_a_pod() -> bool:
    return (_OF_THIS_POD / "token").exists()


def _namespace_of_this_pod() -> str | None:
    with suppress(OSError):
        return (_OF_THIS_POD / "namespace").read_text(encoding="utf-8").strip()
    return None


def _client(configuration: Any) -> Any:
    from kubernetes import client  # noqa: PLC0415

    configuration.retries = 0  # the caller knows whether a request may be repeated
    return client.ApiClient(configuration)


def _proxies(configuration: Any) -> dict[str, str]:
    from requests.utils import should_bypass_proxies  # noqa: PLC0415

    if not configuration.proxy or should_bypass_proxies(configuration.host, configuration.no_proxy or ""):
        return {}
    return dict.fromkeys(("http", "https"), configuration.proxy)


def _message(body: object) -> str:
    """The message in the API server's answer (a Status object)."""
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body or "")
    with suppress(ValueError, RecursionError):
        found = json.loads(text)
        if isinstance(found, Mapping):
            return str(found.get("message", ""))[:_MOST_TOLD]
    return text[:_MOST_QUOTED]
