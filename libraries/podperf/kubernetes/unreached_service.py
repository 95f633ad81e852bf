"""Explains why frames of packet sockets do not reach the address of a Service, from the settings of the cluster."""

from __future__ import annotations

from podperf.kubernetes.api import Api, ApiError
from podperf.kubernetes.known_networks import CILIUM, KnownCilium, balances_at_sockets
from podperf.kubernetes.pod_network import Shown
from podperf.kubernetes.recognition import Recognition

_CILIUM = KnownCilium()
_REMEDY = "set socketLB.hostNamespaceOnly=true (Helm chart of Cilium), and restart Cilium's agents"
_UNKNOWN = "does the cluster have kube-proxy, or what replaces it?"


def why_unreached(api: Api) -> str:
    """The cause in words, with its remedy: a sure one if the login may read Cilium's settings, else a likely one.

    Cilium's socket load balancing gives a socket the address of a pod in place of the Service's when a program calls
    connect(2) or sendmsg(2). A packet socket has no such address, and its frames pass no load balancer.
    """
    agents = Recognition(api).agents
    agent = _CILIUM.agent(Shown(agents=agents))
    try:
        settings = api.ask("GET", next((each.path for each in _CILIUM.questions(agent)), CILIUM))["data"]
    except ApiError as error:
        if error.status == 404 and agents and agent is None:  # another network
            return _UNKNOWN
        return f"{_UNKNOWN} If its network is Cilium with socket load balancing for pods, {_REMEDY}"
    if balances_at_sockets(settings):
        return f"Cilium's socket load balancing for pods does not see frames of packet sockets: {_REMEDY}"
    return _UNKNOWN
