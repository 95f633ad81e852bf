"""The cluster of this machine as data: certificates, files, command lines, control groups; its relay and children."""

from __future__ import annotations

import fcntl
import json
import pickle
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from locked import locked_by_another
from podperf.__main__ import call
from podperf.caches import half_made
from podperf.cluster import command, core, iptables, layout, lifecycle
from podperf.cluster import relay as of_relay
from podperf.cluster.core import Authority
from podperf.cluster.hierarchies import (
    end,
    group_of_programs,
    hierarchies,
    make,
    of_this_machine,
    switch,
    switched_off,
)
from podperf.cluster.layout import ClusterLayout, ClusterNetwork, ClusterPrograms
from podperf.cluster.parts import ALL_NETWORKS, DEFAULT, NETWORKS, PARTS, chosen, network_named
from podperf.cluster.programs import KUBERNETES, GoModule, go_version
from podperf.cluster.relay import listen, relay
from podperf.errors import BadArguments, PodperfError, Unavailable
from podperf.hosts.local import LocalHost
from podperf.kubernetes import own_agents
from podperf.kubernetes.run_namespace import until


@pytest.fixture(params=ALL_NETWORKS, ids=[each.title for each in ALL_NETWORKS])
def wanted(tmp_path: Path, request: pytest.FixtureRequest) -> ClusterLayout:
    """A cluster of two nodes with all parts, once with each network."""
    debian = tmp_path / "debian"
    for program in ("usr/bin/etcd", "usr/bin/containerd", "usr/bin/ctr", "usr/sbin/runc"):
        (debian / program).parent.mkdir(parents=True, exist_ok=True)
        (debian / program).touch()
    extensions = tmp_path / "policies" / "usr/lib/x86_64-linux-gnu/xtables"
    extensions.mkdir(parents=True)
    for module in {module for part in (*PARTS, *NETWORKS) for module in part.modules}:
        for program in module.programs:
            (tmp_path / program.rpartition("/")[2]).touch()
    network, *parts = (
        replace(part, debian=tmp_path / "policies", programs=(tmp_path,) * len(part.modules))
        for part in (request.param, *(kind() for kind in PARTS))
    )
    programs = ClusterPrograms(debian, tmp_path / "kubernetes", network, tuple(parts))
    return ClusterLayout(programs, 4321, layout.nodes(2), (tmp_path / "image.tar",), tmp_path / "run", ("/a", "/b"))


def test_a_layout_reaches_the_first_process_unchanged(wanted: ClusterLayout) -> None:
    assert pickle.loads(pickle.dumps(wanted)) == wanted


def test_a_program_that_no_package_has_is_named(wanted: ClusterLayout) -> None:
    with pytest.raises(PodperfError, match="has no kubectl; remove that folder"):
        wanted.programs.of_debian("kubectl")


def test_all_files_are_in_the_folder_of_the_cluster(wanted: ClusterLayout) -> None:
    found = core.files(wanted)
    assert all(path.is_relative_to(wanted.folder) for path in found)
    assert wanted.kubeconfig in found


def test_commands_name_only_files_that_are_made(wanted: ClusterLayout) -> None:
    made = {str(path) for path in core.files(wanted)}
    node = wanted.nodes[0]
    commands = [
        core.api_server(wanted),
        core.controller_manager(wanted),
        core.scheduler(wanted),
        core.containerd(wanted, node),
        core.kubelet(wanted, node),
        *(part.command(wanted, node) for part in wanted.programs.parts),
        wanted.programs.network.ready(wanted, node),
    ]
    files = re.compile(r"\S*\.(?:crt|key|kubeconfig|yaml|toml)$")
    named = {found for words in commands for word in words for found in files.findall(word.rpartition("=")[2])}
    assert len(named) > 9
    assert named <= made


def test_each_kube_router_has_the_families_of_the_services(wanted: ClusterLayout) -> None:
    """It ends with `too many CIDRs` if it has two networks of Services and one family."""
    (policies,) = [part for part in wanted.programs.parts if part.name == "network-policies"]
    for part in {policies, wanted.programs.network}:
        words = part.command(wanted, wanted.nodes[0])
        ranges = [word for word in words if word.startswith("--service-cluster-ip-range=")]
        assert not ranges or "--enable-ipv6=true" in words


def test_settings_of_a_node_name_only_files_that_are_made(wanted: ClusterLayout) -> None:
    found = core.files(wanted)
    folder = wanted.of_node(wanted.nodes[1])
    settings = yaml.safe_load(found[folder / "kubelet.yaml"])
    assert {settings["tlsCertFile"], settings["tlsPrivateKeyFile"], settings["resolvConf"]} <= set(map(str, found))
    assert settings["authentication"]["x509"]["clientCAFile"] in set(map(str, found))
    assert settings["authentication"]["anonymous"] == {"enabled": False}
    proxy = yaml.safe_load(found[folder / "kube-proxy.yaml"])
    assert proxy["clientConnection"]["kubeconfig"] in set(map(str, found))
    multus = json.loads(found[folder / layout.CNI / "00-multus.conf"])
    assert {multus["kubeconfig"], multus["clusterNetwork"]} <= set(map(str, found))
    assert min(each.name for each in found if each.parent == folder / layout.CNI) == "00-multus.conf", (
        "the first one counts"
    )


def test_a_cluster_without_an_option_has_nothing_of_its_parts(wanted: ClusterLayout) -> None:
    parts = tuple(part for part in wanted.programs.others if part.option is None)
    found = core.files(replace(wanted, programs=replace(wanted.programs, others=parts)))
    assert not [each for each in found if "multus" in each.name or "policies" in each.name]
    assert [each for each in found if each.name == "kube-proxy.kubeconfig"]


def test_nodes_have_networks_of_their_own() -> None:
    for number, whole in enumerate(map(ip_network, layout.PODS.split(","))):
        one, other = (ip_network(each.pods[number]) for each in layout.nodes(2))
        assert not one.overlaps(other)
        assert all(each.version == whole.version and each.network_address in whole for each in (one, other))
    assert len({each.addresses for each in layout.nodes(2)} | {(layout.CONTROL_ADDRESS, layout.CONTROL_ADDRESS_6)}) == 3


def test_the_plug_in_gives_addresses_of_the_networks_that_the_node_announces(wanted: ClusterLayout) -> None:
    for node in wanted.nodes:
        (plugin,) = json.loads(core.files(wanted)[wanted.of_node(node) / layout.CNI / "10-podperf.conflist"])["plugins"]
        ranges = [each["subnet"] for (each,) in plugin.get("ipam", {}).get("ranges", ())]
        assert ranges == list(node.pods[: len(ranges)])
        assert core.of_registered(wanted, node)["spec"] == {"podCIDR": node.pods[0], "podCIDRs": node.pods}
    (plugin,) = [each.plugin(wanted, wanted.nodes[0]) for each in ALL_NETWORKS if each == DEFAULT]
    assert len(plugin["ipam"]["ranges"]) == 2, "the plain network has both families"


def test_nodes_tell_the_word_of_the_cluster_if_their_agent_can_be_restarted(wanted: ClusterLayout) -> None:
    told = core.of_registered(wanted, wanted.nodes[0])["metadata"]["annotations"]
    expected = None if wanted.programs.network.name in {"plain", "ovn"} else wanted.word
    assert told.get(own_agents.WORD) == expected
    assert wanted.word != ClusterLayout(wanted.programs, 4321, wanted.nodes).word
    assert own_agents.SOCKET.parent == layout.FOLDER


def test_a_network_is_chosen_by_its_name_and_mode() -> None:
    assert network_named("plain") == DEFAULT
    for kind in NETWORKS:
        assert network_named(kind.name).mode == kind.modes[0], "the first mode is the default"
        for mode in filter(None, kind.modes):
            assert network_named(f"{kind.name}:{mode}") == kind(mode=mode)
    titles = [each.title for each in ALL_NETWORKS]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("wanted", ["calico", "plain:fast", "", "plain:", "kube-router:vxlan"])
def test_an_unknown_network_is_refused_with_the_known_ones(wanted: str) -> None:
    with pytest.raises(BadArguments, match=f"there is no network '{wanted}'; choose one of plain, .*kube-router"):
        network_named(wanted)


@pytest.mark.parametrize(
    ("title", "refused"), [("flannel:vxlan", True), ("flannel:host-gw", False), ("bird:vxlan", True), ("bird", False)]
)
def test_a_network_says_which_link_type_the_kernel_lacks(
    title: str, refused: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(layout, "missing_link_type", lambda _, kind, *__: asked.append(kind) or f"no {kind} here")
    monkeypatch.setattr(iptables, "_BRIDGED", tmp_path)
    network = network_named(title)
    if refused:
        with pytest.raises(Unavailable, match=f"no vxlan here; modprobe vxlan, or choose {network.name}:"):
            network.demand(LocalHost())
    else:
        network.demand(LocalHost())
    assert asked == ["vxlan"] * refused


def test_the_network_has_each_link_address_and_route_once(wanted: ClusterLayout) -> None:
    parts = (part.network_commands(wanted.nodes) for part in wanted.programs.parts)
    commands = [*core.network_commands(wanted.nodes), *(each for part in parts for each in part)]
    added = [each for each in commands if "add" in each]
    assert added and len(set(added)) == len(added), "a second one fails, and the cluster does not start"


def test_frames_of_a_bridge_that_pass_no_iptables_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(iptables, "_BRIDGED", tmp_path / "none")
    for title in ("flannel", "kube-router"):
        with pytest.raises(Unavailable, match="modprobe br_netfilter"):
            network_named(title).demand(LocalHost())


def test_nodes_exchange_their_own_blocks_by_bgp_and_in_the_tunnel_if_there_is_one() -> None:
    for title, neighbour in (("bird", "10.199.0.12"), ("bird:vxlan", "10.245.0.12")):
        network = network_named(title)
        wanted = ClusterLayout(ClusterPrograms(Path("/d"), Path("/k"), network), 4321, layout.nodes(2))
        one, other = wanted.nodes
        settings = network.files(wanted, one)["bird.conf"].decode()
        assert f"neighbor {neighbour} as 64512" in settings
        assert all(f"route {pods} blackhole;" in settings for pods in one.pods)
        assert not any(f"route {pods}" in settings for pods in other.pods), "the other node tells them"
        assert bool(list(network.network_commands(wanted.nodes))) is (title == "bird:vxlan")


def test_parts_that_a_network_does_not_take_are_refused_and_those_that_it_replaces_do_not_start() -> None:
    names = [part.name for part in chosen(DEFAULT, ["multus", "network-policies"])]
    assert names == ["kube-proxy", "network-policies", "multus"]
    with pytest.raises(BadArguments, match=r"^--multus does not go with --network kube-router, but with plain"):
        chosen(network_named("kube-router"), ["multus"])

    class OneAgent(ClusterNetwork):
        name = "one-agent"
        takes = ("network-policies",)

        def replaces(self) -> Collection[str]:
            return ("kube-proxy", "network-policies")

    assert chosen(OneAgent(), ["network-policies"]) == []


@pytest.mark.parametrize("name", ["plain", "flannel:host-gw", "bird:vxlan", "kube-router", "cilium:native"])
def test_a_network_that_enforces_policies_needs_no_part_for_them(name: str) -> None:
    names = [part.name for part in chosen(network_named(name), ["network-policies"])]
    own = name in {"kube-router", "cilium:native"}
    assert names == (["kube-proxy"] if own else ["kube-proxy", "network-policies"])


def test_a_node_is_known_by_name_and_group_now_and_not_for_ever() -> None:
    authority = Authority()
    made = authority.certify("system:node:node1", "system:nodes", ("node1", "10.199.0.11"))
    read = x509.load_pem_x509_certificate(made.certificate)
    assert read.subject.rfc4514_string() in {
        "CN=system:node:node1,O=system:nodes",
        "O=system:nodes,CN=system:node:node1",
    }
    names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [ip_address("10.199.0.11")]
    assert names.get_values_for_type(x509.DNSName) == ["node1"]
    read.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))
    assert read.not_valid_before_utc < datetime.now(UTC) < read.not_valid_after_utc
    assert (read.not_valid_after_utc - read.not_valid_before_utc).days == 30


MOUNTS = """\
25 30 0:22 / /proc rw - proc proc rw
30 28 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
34 30 0:30 /docker/1 /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
35 30 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""
GROUPS = "5:pids:/docker/1\n4:memory:/shell/1\n3:cpu,cpuacct:/\n1:name=systemd:/\n0::/\n"


def test_hierarchies_are_where_they_are_mounted_as_a_whole() -> None:
    assert {(hierarchy.controllers, str(hierarchy.folder)) for hierarchy in hierarchies(MOUNTS, GROUPS)} == {
        ("name=systemd", "/sys/fs/cgroup/systemd"),
        ("cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct"),
        ("memory", "/sys/fs/cgroup/memory/shell/1"),
        ("", "/sys/fs/cgroup/unified"),
    }


def test_controllers_of_version_2_that_are_off_are_switched_on_and_off_again(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory hugetlb pids rdma\n")
    control = tmp_path / "cgroup.subtree_control"
    control.write_text("cpu memory pids\n")
    off = switched_off(tmp_path)
    assert off == ["cpuset", "hugetlb"], "io and rdma are nothing to a cluster"
    switch(tmp_path, ["cpuset"], on=True)
    assert control.read_text() == "+cpuset"
    switch(tmp_path, ["cpuset"], on=False)
    assert control.read_text() == "-cpuset"
    assert group_of_programs(tmp_path) == tmp_path / "programs"


def test_a_controller_that_the_kernel_keeps_is_named(tmp_path: Path) -> None:
    with pytest.raises(PodperfError, match=r"does not switch on the controller cpu .*\(Not a directory\)"):
        switch(Path("/dev/null"), ["cpu"], on=True)
    switch(Path("/dev/null"), ["cpu"], on=False)  # others use it
    assert switched_off(tmp_path) == [], "version 1"
    assert group_of_programs(tmp_path) == tmp_path


@pytest.mark.parametrize(
    ("mounts", "controllers", "found"),
    [
        ("", "", "there is no cpu, cpuacct, cpuset, devices, memory, pids here"),
        ("cgroup2", "cpu io pids", "there is no cpuset, memory here"),
        ("cgroup2", "cpuset cpu io memory pids", ""),
    ],
)
def test_a_machine_without_controllers_says_which(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mounts: str, controllers: str, found: str
) -> None:
    (tmp_path / "cgroup.controllers").write_text(controllers)
    read = Path.read_text
    files = {"/proc/self/mountinfo": f"1 1 0:1 / {tmp_path} rw - {mounts} x rw\n", "/proc/self/cgroup": "0::/a\n"}
    monkeypatch.setattr(Path, "read_text", lambda path, *rest: files.get(str(path)) or read(path, *rest))
    if not found:
        assert [each.folder for each in of_this_machine()] == [tmp_path]
        return
    with pytest.raises(Unavailable, match=found):
        of_this_machine()


def test_version_2_beside_version_1_has_groups_of_the_cluster_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """BPF programs of a node hang on its group of version 2, and never on the machine's."""
    needed = ("cpu", "cpuacct", "cpuset", "devices", "memory", "pids")
    mounts = "".join(f"1 1 0:1 / /groups/{each} rw - cgroup cgroup rw,{each}\n" for each in needed)
    files = {
        "/proc/self/mountinfo": f"{mounts}1 1 0:2 / /groups/unified rw - cgroup2 cgroup2 rw\n",
        "/proc/self/cgroup": "".join(f"1:{each}:/shell\n" for each in needed) + "0::/\n",
    }
    monkeypatch.setattr(Path, "read_text", lambda path, *rest: files[str(path)])
    *first, second = (str(each.folder) for each in of_this_machine())
    assert first == [f"/groups/{each}/shell" for each in needed]
    assert second == "/groups/unified"


def test_groups_without_processes_are_removed_with_those_below(tmp_path: Path) -> None:
    group = tmp_path / "podperf-cluster"
    make([group], ["control", "node1"])
    (group / "node1" / "kubepods").mkdir()
    assert end([group])
    assert not group.exists()
    assert not end([group])


def test_an_old_go_is_told_from_a_new_one() -> None:
    assert go_version("go version go1.26.8 linux/amd64", (1, 24)) == "1.26.8"
    assert go_version("go version go1.24rc1 linux/amd64", (1, 24)) == "1.24rc1"
    assert go_version("go version go1.24.1 linux/amd64", (1, 26)) is None
    assert go_version("go version go1.19.8 linux/amd64", (1, 24)) is None
    assert go_version("", (1, 24)) is None
    assert KUBERNETES.oldest_go == (1, 24)


@pytest.mark.parametrize("module", {module for part in (*PARTS, *NETWORKS) for module in part.modules})
def test_a_module_requires_the_programs_that_are_built(module: GoModule) -> None:
    assert tuple(re.findall(r'_ "(\S+)"', (module.folder / "tools.go").read_text())) == module.programs
    assert f"{module.requires} v{module.version} h1:" in (module.folder / "go.sum").read_text()


def test_the_parts_of_kubernetes_have_one_version() -> None:
    assert f"k8s.io/api v{KUBERNETES.version.replace('1.', '0.', 1)}" in (KUBERNETES.folder / "go.mod").read_text()


@contextmanager
def relayed(address: str, port: int) -> Iterator[tuple[str, int]]:
    """Where a relay to this address listens."""
    with listen() as listening:
        thread = threading.Thread(target=relay, args=(listening, address, port), daemon=True)
        thread.start()
        yield listening.getsockname()
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(30)
        assert not thread.is_alive()


def test_the_relay_leads_both_ways_and_passes_ends_on() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    with server, relayed(*server.getsockname()) as where, socket.create_connection(where, timeout=30) as near:
        far, _ = server.accept()
        with far:
            near.sendall(b"question")
            near.shutdown(socket.SHUT_WR)
            assert b"".join(iter(lambda: far.recv(100), b"")) == b"question"
            far.sendall(b"answer")
            far.shutdown(socket.SHUT_WR)
            assert b"".join(iter(lambda: near.recv(100), b"")) == b"answer"


def test_the_relay_ends_a_connection_that_nobody_accepts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        _, port = server.getsockname()
    with relayed("127.0.0.1", port) as where, socket.create_connection(where, timeout=30) as near:
        assert near.recv(1) == b""


def test_a_local_user_cannot_end_the_relay_by_many_connections() -> None:
    """The relay runs in a process of its own, which may have few open files. The user takes them all, and lets go."""
    server = socket.create_server(("127.0.0.1", 0))
    script = f"""
import resource, sys, time
sys.path.insert(0, {str(Path(layout.__file__).parents[2])!r})
from podperf.cluster import relay
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
def tell_and_sleep(seconds, sleep=time.sleep):
    print("no file is free", flush=True)
    sleep(seconds)
time.sleep = tell_and_sleep
listening = relay.listen()
print(listening.getsockname()[1], flush=True)
relay.relay(listening, *{server.getsockname()!r})
"""
    with server, subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            where = ("127.0.0.1", int(child.stdout.readline()))
            with ExitStack() as held:
                for _ in range(100):
                    held.enter_context(socket.create_connection(where, timeout=30))
                assert child.stdout.readline() == "no file is free\n"
            threading.Thread(target=_answer_each, args=(server,), daemon=True).start()
            assert until(lambda: _asked(where) == b"here", 60), "files are free again, and nothing is led"
        finally:
            child.kill()


def _answer_each(server: socket.socket) -> None:
    with suppress(OSError):  # the server is closed
        while True:
            far, _ = server.accept()
            with far, suppress(OSError):  # the user has let go of this connection
                far.sendall(b"here")


def _asked(where: tuple[str, int]) -> bytes:
    """The bytes that the relay leads back. It leads none while it has no file for the way to the server."""
    with socket.create_connection(where, timeout=30) as near:
        return near.recv(4)


def test_connections_have_a_limit_and_those_that_the_server_ended_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_relay, "_MOST", 3)
    server = socket.create_server(("127.0.0.1", 0))
    with server, relayed(*server.getsockname()) as where, ExitStack() as opened:
        idle = [opened.enter_context(socket.create_connection(where, timeout=30)) for _ in range(5)]
        far = [server.accept()[0] for _ in range(3)]
        server.settimeout(0.3)
        with pytest.raises(TimeoutError):
            server.accept()
        for each in far:
            each.close()  # as an API server does after 32 s without a login
        assert idle[0].recv(1) == b"", "the user keeps the connection, and the relay does not"
        for _ in range(2):
            server.accept()[0].close()


def test_children_tell_their_exit_codes(tmp_path: Path) -> None:
    """In a process of its own, because `bury` waits for all children of a process."""
    script = f"""
import os, sys, threading, time
sys.path.insert(0, {str(Path(layout.__file__).parents[2])!r})
from pathlib import Path
from podperf.cluster.inside import Children
ended = threading.Event()
def note(part, code):
    print(part, code, flush=True)
    ended.set()
children = Children(note, {{"PATH": "/usr/bin:/bin", "COLOUR": "blue"}})
threading.Thread(target=children.bury, daemon=True).start()
log = Path({str(tmp_path / "log")!r})
print(children.run(["sh", "-c", "echo $COLOUR; exit 7"], log), flush=True)
print(children.run(["true"], log), flush=True)
group = Path({str(tmp_path)!r})
number = children.start("the part", ["sh", "-c", "exit 3"], log, [group])
assert ended.wait(10)
print(number)
deaf = "sh -c 'trap \\"\\" TERM; echo up; sleep 60' & wait"
number = children.start("lasting", ["sh", "-c", deaf], log)
while "up" not in log.read_text():
    time.sleep(0.01)
children.end(number)
print(number)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30)
    first, second, part, number, ended = done.stdout.splitlines()
    assert (first, second, part) == ("7", "0", "the part 3")
    assert (tmp_path / "log").read_text() == "blue\nup\n"
    assert until(lambda: not _running_in_session(ended), 10)
    assert (tmp_path / "cgroup.procs").read_text() == f"{number}\n"


def _running_in_session(number: str) -> bytes:
    """The processes there that have not ended. Others may still wait to be buried."""
    asked = ["pgrep", "--session", number, "--runstates", "R,S,D"]
    return subprocess.run(asked, check=False, capture_output=True).stdout


def test_what_ended_is_told_with_the_last_lines_of_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of a start that fail, and a part. In a process of its own, because `bury` waits for all children."""
    monkeypatch.setattr(lifecycle, "FOLDER", tmp_path)
    assert lifecycle._ended() is None
    (tmp_path / "logs").mkdir()
    programs = ClusterPrograms(tmp_path, tmp_path, DEFAULT)
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "usr" / "bin" / "ctr").touch()
    wanted = ClusterLayout(programs, 4321, layout.nodes(1), (tmp_path / "image.tar",), tmp_path)
    (tmp_path / "layout").write_bytes(pickle.dumps(wanted))
    script = f"""
import pickle, sys, threading
sys.path.insert(0, {str(Path(layout.__file__).parents[2])!r})
from pathlib import Path
from podperf.cluster import inside
inside._within = lambda _, command: ["sh", "-c", "echo full >&2; exit $0", str(int(command[-1] != "version"))]
started = inside.Inside(pickle.loads(Path({str(tmp_path / "layout")!r}).read_bytes()))
threading.Thread(target=started.children.bury, daemon=True).start()
started._give_images(started._wanted.nodes[0], 1)
started._failed = False
started._do("sh", "-c", "echo no such device >&2; exit 2")
started._do("sh", "-c", "echo another")
started._note("etcd", 3)
"""
    (tmp_path / "logs" / "etcd").write_text("one\ntwo\nthree\nbind: address in use\n")
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)
    assert lifecycle._ended() == (
        "import of image.tar on node1 ended with exit code 1: full | full; "
        "sh -c 'echo no such device >&2; exit 2' ended with exit code 2: no such device; "
        "etcd ended with exit code 3: two | three | bind: address in use"
    )


def test_a_second_cluster_is_refused_before_its_programs_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "running", lambda: True)
    monkeypatch.setattr(command, "ready_programs", lambda *_: pytest.fail("it builds"))
    with pytest.raises(PodperfError, match="a cluster runs already"):
        call(["cluster", "up", "--own", "--network", "cilium"])


def test_a_folder_without_processes_is_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, group = tmp_path / "cluster", tmp_path / "group"
    monkeypatch.setattr(lifecycle, "FOLDER", folder)
    monkeypatch.setattr(lifecycle, "CACHE", tmp_path / "cache")
    assert lifecycle.forget_killed(print) == []
    folder.mkdir()
    make([group], ["control"])
    (folder / "groups").write_text(f"{group}\n")
    assert lifecycle.state() is None
    assert lifecycle.forget_killed(print) == [str(folder)]
    assert not folder.exists()
    assert not group.exists()


def test_another_user_cannot_hold_the_locks_of_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever can open a file or a folder can lock it (flock(2)), and podperf would wait."""
    monkeypatch.setattr(lifecycle, "CACHE", tmp_path / "cache")
    (tmp_path / "cache.lock").touch(0o666)
    with ExitStack() as undo, lifecycle._alone(print):
        locked = [tmp_path / "cache.lock", half_made(LocalHost(), tmp_path / "image", undo)]
        with (tmp_path / "cache.lock").open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert [each.stat().st_mode & 0o066 for each in locked] == [0, 0]


def test_who_waits_for_the_lock_of_the_cluster_says_for_whom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "CACHE", tmp_path / "cache")
    said: list[str] = []
    with locked_by_another(tmp_path / "cache.lock", "\x1b[2J") as other:

        def say(line: str) -> None:
            said.append(line)
            assert other.stdin is not None
            other.stdin.close()

        with lifecycle._alone(say):
            (line,) = said
    assert line.startswith(f"waiting for process {other.pid} ({sys.executable} ")
    assert line.endswith(f"), which has locked {tmp_path}/cache.lock") and "\\x1b[2J" in line and line.isprintable()


def node(conditions: list[tuple[str, str, str]], taints: Sequence[str] = ()) -> dict[str, Any]:
    """A node as the API server shows it."""
    found = [{"type": kind, "status": status, "message": message} for kind, status, message in conditions]
    return {"spec": {"taints": [{"key": taint} for taint in taints]}, "status": {"conditions": found}}


def test_a_node_is_ready_when_it_says_so_and_takes_pods() -> None:
    assert lifecycle.why_not_ready(node([("Ready", "True", "")])) is None
    assert lifecycle.why_not_ready(node([("Ready", "False", "no CNI")])) == "no CNI"
    assert lifecycle.why_not_ready(node([])) == "it has no condition yet"
    tainted = node([("Ready", "True", "")], ["node.kubernetes.io/not-ready"])
    assert lifecycle.why_not_ready(tainted) == "it is not ready yet"
    both = node([("Ready", "False", "no CNI")], ["node.kubernetes.io/not-ready"])
    assert lifecycle.why_not_ready(both) == "no CNI", "the kubelet's reason says more"
