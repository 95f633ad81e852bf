"""A Service of Kubernetes, by the rules that kube-proxy gives to nftables, in front of a network like docker's.

A frame from outside is for the Service's address. The worker translates this address to that of the Service's endpoint,
the first pod. The pods are proxies, as those of the data plane `docker`. There is no masquerade on the worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import ClassVar

from podperf.addressing import SERVICE_PORT, left_of, right_of, service_from_left, service_from_right
from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.docker import Docker
from podperf.hosts.base import Host
from podperf.model import Chain
from podperf.pods.cni import CniPlugins

# The chains of kube-proxy's mode `nftables` (Kubernetes 1.33), with one endpoint for each Service.
_RULES = """
table ip kube-proxy {{
  map service-ips {{
    type ipv4_addr . inet_proto . inet_service : verdict
    elements = {{ {left} . udp . {port} : goto service-left, {right} . udp . {port} : goto service-right }}
  }}
  chain services {{
    ip daddr . meta l4proto . th dport vmap @service-ips
  }}
  chain service-left {{
    numgen random mod 1 vmap {{ 0 : goto endpoint-left }}
  }}
  chain service-right {{
    numgen random mod 1 vmap {{ 0 : goto endpoint-right }}
  }}
  chain endpoint-left {{
    ip saddr {left_pod} jump mark-for-masquerade
    meta l4proto udp dnat to {left_pod}:{port}
  }}
  chain endpoint-right {{
    ip saddr {right_pod} jump mark-for-masquerade
    meta l4proto udp dnat to {right_pod}:{port}
  }}
  chain mark-for-masquerade {{
    meta mark set meta mark | 0x4000
  }}
  chain masquerading {{
    meta mark & 0x4000 == 0 return
    meta mark set meta mark ^ 0x4000
    masquerade fully-random
  }}
  chain nat-prerouting {{
    type nat hook prerouting priority dstnat; policy accept;
    jump services
  }}
  chain nat-postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    jump masquerading
  }}
}}
"""


class Service(Docker):
    """A Service in each direction: the outermost pods are its endpoints."""

    name: ClassVar[str] = "service"
    maps_ports: ClassVar[bool] = False

    @staticmethod
    def unavailable(host: Host) -> str | None:
        if host.ask("which", "nft", check=False).exit_code:
            return "nftables is not installed, and has the rules of the Service (Debian package nftables)"
        return CniPlugins(host).missing("bridge", "static")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        running = super().set_up(worker, chain, undo)
        rules = _RULES.format(
            left=service_from_left(0),
            right=service_from_right(chain.pods + 1),
            left_pod=right_of(0),
            right_pod=left_of(chain.pods),
            port=SERVICE_PORT,
        )
        worker.host.do("nft", "-f", "-", stdin=rules)
        return running

    def rules(self, host: Host) -> Mapping[str, Sequence[str]]:
        return {"nftables": host.ask("nft", "list", "table", "ip", "kube-proxy").stdout.splitlines()}
