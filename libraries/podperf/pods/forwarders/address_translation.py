"""The pod is the destination of the frames and sends them on to the next address, as a proxy or load balancer does.

Some data planes deliver a frame only to the pod that has its destination address. So the pod's kernel rewrites the
destination of each frame (nftables NAT).
"""

from __future__ import annotations

from podperf.addressing import SERVICE_PORT
from podperf.pods.base import Pod

# Rules match the interface where a frame arrives: net1 from the left, net2 from the right.
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
    """Send frames that arrive on net1 to `next_right`, and frames that arrive on net2 to `next_left`.

    With `masquerade`, the pod's own address becomes their source. The pod needs routes, too (`kernel.route_via`).
    """
    source_rule = 'oifname { "net1", "net2" } masquerade' if masquerade else ""
    rules = _RULES.format(port=SERVICE_PORT, next_left=next_left, next_right=next_right, source_rule=source_rule)
    pod.host.do("nft", "-f", "-", stdin=rules)
