"""Namespaces of a run: when one is removed, the names of its veth pairs in other namespaces are free at once."""

from __future__ import annotations

from contextlib import ExitStack

from namespaces import add_namespace
from podperf.hosts.linux import add_veth, ip_json
from podperf.hosts.local import LocalHost


def test_the_other_end_of_a_pair_is_gone_with_the_namespace() -> None:
    """The kernel removes a namespace later. Until then the other end of a veth pair would keep its name.

    On a machine behind SSH, the other ends of pods are in the machine's own namespace. The next chain needs their names
    there. A set-up that came too early would fail: "File exists".
    """
    with ExitStack() as undo:
        stays = add_namespace("stays", undo)
        for _ in range(5):
            with ExitStack() as pod:
                goes = add_namespace("goes", pod)
                ends = {"near_namespace": stays.namespace, "far_namespace": goes.namespace}
                add_veth(LocalHost(), near="pod1a", far="net1", mtu=1500, **ends)
            assert "pod1a" not in {each["ifname"] for each in ip_json(stays, "link", "show")}
