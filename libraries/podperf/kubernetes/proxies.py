"""Chooses the proxy between podperf and a cluster, as kubectl does.

The package kubernetes uses HTTP_PROXY for all servers, and ignores NO_PROXY and the kubeconfig's `proxy-url`.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies

from requests.utils import should_bypass_proxies
from urllib3 import make_headers

from podperf.errors import PodperfError
from podperf.http_login import address

_NOBODY = "no.invalid"
# The options of a WebSocket without a proxy. If none is named, the package websocket reads the environment.
BYPASSED: Mapping[str, Any] = {"http_proxy_host": _NOBODY, "http_proxy_port": 1, "http_no_proxy": ["*"]}


def choose_proxy(configuration: Any, proxy_url: str | None = None) -> None:
    """Give a Configuration of the package kubernetes its proxy. PodperfError if podperf cannot use it.

    `proxy_url` of the kubeconfig is for all requests. Without it, HTTPS_PROXY or HTTP_PROXY counts by the scheme of the
    server's URL, unless NO_PROXY names the server.
    """
    given = proxy_url or _of_environment(str(configuration.host))
    configuration.no_proxy = ""  # this function has decided it
    configuration.proxy = given and _usable(given if "://" in given else f"http://{given}")
    login = _login(configuration.proxy) if configuration.proxy else None
    configuration.proxy_headers = make_headers(proxy_basic_auth=":".join(login)) if login else None


def _of_environment(server: str) -> str | None:
    parts, proxies = urlsplit(server), getproxies()
    if _is_here(parts.hostname or "") or should_bypass_proxies(server, proxies.get("no", "")):
        return None
    return proxies.get(parts.scheme)


def _is_here(host: str) -> bool:
    """Whether a host is this machine, to which no proxy leads."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _usable(proxy: str) -> str:
    try:
        parts = urlsplit(proxy)
        usable = parts.scheme == "http" and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise PodperfError(
            f"no cluster: the proxy {address(proxy)} leads there, and podperf can only use proxies with a URL "
            "http://HOST:PORT (`proxy-url` of the kubeconfig, or HTTPS_PROXY); NO_PROXY names servers without a proxy"
        )
    return proxy


def _login(proxy: str) -> tuple[str, str] | None:
    parts = urlsplit(proxy)
    return None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))


def tunnel(options: dict[str, Any], configuration: Any, _url: str, _headers: object) -> dict[str, Any]:
    """The options of a WebSocket that goes by the proxy of a Configuration."""
    parts = urlsplit(configuration.proxy)
    proxy = {"http_proxy_host": parts.hostname, "http_proxy_port": parts.port or 80}
    return {**options, **proxy, "http_proxy_auth": _login(configuration.proxy), "http_no_proxy": [_NOBODY]}
