"""The data plane `routed` with a network policy: the worker's firewall permits the traffic of pods that is named.

The rules are in the form that agents of Kubernetes give to nftables: connections that stand are accepted at once, a map
leads to the chain of the pod, and the chain permits what its policies name.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import ClassVar

from podperf.addressing import LEFT_NETWORK, RIGHT_NETWORK
from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.routed import Routed
from podperf.hosts.base import Host
from podperf.model import Chain

# Rules for the pods' interfaces on the worker. Each pod has two.
_RULES = """
table ip podperf-policy {{
  map pods {{ type ifname : verdict; elements = {{ {elements} }} }}
  chain forward {{
    type filter hook forward priority filter; policy accept;
    ct state established,related accept
    ct state invalid drop
    oifname vmap @pods
  }}
  chain pod {{
    ip saddr {left} meta l4proto udp accept
    ip saddr {right} meta l4proto udp accept
    drop
  }}
}}
"""


class RoutedPolicy(Routed):
    """Each packet that is forwarded crosses the rules, and connection tracking. The policy permits UDP of the test
    network, and drops all else that is for a pod."""

    name: ClassVar[str] = "routed-policy"

    @staticmethod
    def unavailable(host: Host) -> str | None:
        if host.ask("which", "nft", check=False).exit_code:
            return "nftables is not installed, and has the rules of the policy (Debian package nftables)"
        return None

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        running = super().set_up(worker, chain, undo)
        ends = [f"cali{number}{end}" for number in range(1, chain.pods + 1) for end in "ab"]
        elements = ", ".join(f'"{each}" : goto pod' for each in ends)
        rules = _RULES.format(elements=elements, left=LEFT_NETWORK, right=RIGHT_NETWORK)
        worker.host.do("nft", "-f", "-", stdin=rules)
        return running
