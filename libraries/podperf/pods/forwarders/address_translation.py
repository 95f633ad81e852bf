"""The pod is the destination of the frames and sends them on to the next address, as a proxy or load balancer does.

For data planes that deliver a frame by the pod's own address. The pod's kernel rewrites destinations (nftables NAT).
"""

from __future__ import annotations

from podperf.addressing import SERVICE_PORT
from podperf.hosts.linux import sysctl
from podperf.pods.base import Pod

# Rules match on the side where a frame came in: net1 from the left, net2 from the right.
_RULES = """
table ip podperf {{
  chain incoming {{
    type nat hook prerouting priority dstnat;
    iifname "net1" udp dport {port} dnat to {next_right}:{port}
    iifname "net2" udp dport {port} dnat to {next_left}:{port}
  }}
  chain outgoing {{
    type nat hook postrouting priority srcnat;
    {source_rule}
  }}
}}
"""


def translate(pod: Pod, next_left: str, next_right: str, *, masquerade: bool) -> None:
    """Send what comes in on net1 to `next_right`, on net2 to `next_left`; with `masquerade` as the pod's own frames."""
    sysctl(pod.host, net__ipv4__ip_forward=1)
    source_rule = 'oifname { "net1", "net2" } masquerade' if masquerade else ""
    rules = _RULES.format(port=SERVICE_PORT, next_left=next_left, next_right=next_right, source_rule=source_rule)
    pod.host.do("nft", "-f", "-", stdin=rules)
