"""Namespaces of a run: when one is removed, the names that it took elsewhere are free at once."""

from __future__ import annotations

from contextlib import ExitStack

from namespaces import add_namespace
from podperf.hosts.linux import add_veth, ip_json
from podperf.hosts.local import LocalHost


def test_the_other_end_of_a_pair_is_gone_with_the_namespace() -> None:
    """A chain on a machine behind SSH has its pods' other ends in the machine's own namespace: the next one needs their
    names. The kernel takes a namespace apart when it has time, and a set-up that came first found that the file exists.
    """
    with ExitStack() as undo:
        stays = add_namespace("stays", undo)
        for _ in range(5):
            with ExitStack() as pod:
                goes = add_namespace("goes", pod)
                ends = {"near_namespace": stays.namespace, "far_namespace": goes.namespace}
                add_veth(LocalHost(), near="pod1a", far="net1", mtu=1500, **ends)
            assert "pod1a" not in {each["ifname"] for each in ip_json(stays, "link", "show")}
