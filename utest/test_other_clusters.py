"""Clusters that `podperf cluster` uses in place of its own. The programs k3s and kind are scripts here, and their API
servers are HTTP servers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from http_servers import Request, Server, http_server, kubeconfig
from podperf.__main__ import call
from podperf.cluster import command, lifecycle, other_clusters
from podperf.cluster.layout import FOLDER
from podperf.errors import BadArguments, PodperfError
from podperf.testbed.run_lock import RunLock

# Notes its arguments and its input, and keeps the names of its clusters in a file.
KIND = """#!/bin/sh
cd "$(dirname "$0")"
[ ! -e broken ] || { echo "docker does not run" >&2; exit 1; }
case "$1 $2" in
    'get clusters') cat clusters ;;
    'create cluster') echo "kind $*" >>said && cat >>said && echo >>said && [ ! -e full ] && cat config >"$4" &&
        echo podperf >>clusters ;;
    'delete cluster') echo "kind $*" >>said && grep -v '^podperf$' clusters >others; mv others clusters ;;
    *) echo "kind $*" >>said ;;
esac
"""
K3S = """#!/bin/sh
echo "k3s $*" >>"$(dirname "$0")/said"
"""
NODES = {
    "items": [
        {"metadata": {"name": "a"}, "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        {
            "metadata": {"name": "b"},
            "spec": {},
            "status": {"conditions": [{"type": "Ready", "status": "False", "message": "no \x1b[31mCNI"}]},
        },
    ]
}


class Bench:
    """A machine whose programs and kubeconfigs are those of a test."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.programs = folder, folder / "bin"
        self._monkeypatch = monkeypatch
        self.programs.mkdir()
        for each in ("sh", "cat", "dirname", "grep", "mv", "which", "setpriv"):
            (self.programs / each).symlink_to(next(Path(at) / each for at in ("/usr/bin", "/bin") if _has(at, each)))
        monkeypatch.setenv("PATH", str(self.programs))
        monkeypatch.delenv("KUBECONFIG", raising=False)
        monkeypatch.delenv("SUDO_UID", raising=False)
        self.k3s, self.kind = folder / "k3s.yaml", folder / "podperf-kind"
        monkeypatch.setattr(other_clusters, "K3S_KUBECONFIG", self.k3s)
        monkeypatch.setattr(other_clusters, "KIND_FOLDER", self.kind)
        monkeypatch.setattr(other_clusters, "RunLock", partial(RunLock, folder=str(folder / "lock")))
        monkeypatch.setattr(command, "ready_image", lambda _host, _say, image: SimpleNamespace(path=Path(image.name)))
        monkeypatch.setattr(lifecycle, "running", lambda: False)
        monkeypatch.setattr(lifecycle, "state", lambda: None)
        monkeypatch.setattr(lifecycle, "down", lambda _say: False)
        monkeypatch.setattr(command, "_up", lambda _around, _wanted: print("podperf's own cluster"))

    def program(self, name: str, text: str) -> None:
        """Put a program on the PATH."""
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def with_k3s(self, server: Server) -> None:
        """Let k3s run."""
        self.program("k3s", K3S)
        self.k3s.write_text(kubeconfig(server.url))

    def with_kind(self, server: Server, *clusters: str) -> None:
        """Let kind work."""
        self.program("kind", KIND)
        (self.programs / "config").write_text(kubeconfig(server.url))
        (self.programs / "clusters").write_text("".join(f"{cluster}\n" for cluster in clusters))

    def named(self, server: Server) -> str:
        """Name a cluster in KUBECONFIG."""
        path = self.folder / "named.yaml"
        path.write_text(kubeconfig(server.url))
        self._monkeypatch.setenv("KUBECONFIG", str(path))
        return str(path)

    @property
    def said(self) -> list[str]:
        """The commands that k3s and kind got, and the input of kind."""
        path = self.programs / "said"
        return path.read_text().splitlines() if path.exists() else []


def _has(folder: str, program: str) -> bool:
    return (Path(folder) / program).exists()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A machine without any cluster."""
    return Bench(tmp_path, monkeypatch)


@contextmanager
def api_server(number: str = "1", *, reads_nodes: bool = True, version: str = "v1.30.1") -> Iterator[Server]:
    """An API server of the cluster with this number (UID)."""

    def answer(request: Request) -> tuple[int, dict[str, str], bytes]:
        answers: dict[str, object] = {
            "/version": {"gitVersion": version},
            "/api/v1/namespaces/kube-system": {"metadata": {"uid": number}},
            **({"/api/v1/nodes": NODES} if reads_nodes else {}),
        }
        found = answers.get(request.path)
        return (403, {}, b"{}") if found is None else (200, {}, json.dumps(found).encode())

    with http_server(answer) as server:
        yield server


Out = Callable[[], tuple[str, str]]


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str]) -> Out:
    """Reads the output and the errors since the last call."""

    def found() -> tuple[str, str]:
        said = capsys.readouterr()
        return said.out, said.err

    return found


def test_without_another_cluster_podperf_makes_its_own(bench: Bench, out: Out) -> None:
    assert call(["cluster", "up"]) == 0
    assert out() == ("podperf's own cluster\n", "")
    with pytest.raises(PodperfError, match="no cluster runs here"):
        call(["cluster", "status"])
    call(["cluster", "down"])
    assert out()[0] == "there was no cluster that podperf made\n"


@pytest.mark.parametrize("what", ["down", "status"])
@pytest.mark.parametrize("option", ["--own", "--nodes=1", "--multus", "--network=flannel", "--image=a.tar"])
def test_only_up_has_options(what: str, option: str, bench: Bench) -> None:
    name = option.partition("=")[0]
    with pytest.raises(BadArguments, match=f"^{name}: only `cluster up` has this option$"):
        call(["cluster", what, option])


def test_k3s_gets_the_images_and_is_described(bench: Bench, out: Out) -> None:
    with api_server() as server:
        bench.with_k3s(server)
        call(["cluster", "up", "--image", "further.tar"])
        said, told = out()
        assert f"k3s of this machine is used ({bench.k3s}); --own starts podperf's own cluster" in told
        assert said.splitlines()[0] == r"k3s of this machine: Kubernetes v1.30.1: a: ready; b: no \x1b[31mCNI"
        assert said.endswith(f"export KUBECONFIG={bench.k3s}\n")
        images = [f"k3s ctr --namespace k8s.io images import {each}" for each in (*own_images(), "further.tar")]
        assert bench.said == images
        call(["cluster", "status"])
        assert out()[0].startswith("k3s of this machine: Kubernetes v1.30.1")
        call(["cluster", "down"])
        assert out()[0] == "there was no cluster that podperf made\n"
        assert bench.said == images


def own_images() -> tuple[str, str]:
    return command.POD.name, command.DPDK.name


@pytest.mark.parametrize("arguments", [["--nodes", "2"], ["--network-policies"], ["--network", "flannel"]])
def test_a_cluster_that_podperf_does_not_make_cannot_be_shaped(bench: Bench, arguments: list[str]) -> None:
    with api_server() as server:
        bench.with_k3s(server)
        with pytest.raises(PodperfError, match=r"k3s of this machine is used here, .*: add --own, or leave them out"):
            call(["cluster", "up", *arguments])
        assert bench.said == []


def test_own_is_podperfs_own_whatever_else_is_here(bench: Bench, out: Out) -> None:
    with api_server() as server:
        bench.with_k3s(server)
        bench.with_kind(server)
        bench.named(server)
        call(["cluster", "up", "--own"])
        assert out() == ("podperf's own cluster\n", "")
        assert bench.said == []


def test_beside_podperfs_own_cluster_no_other_is_used(bench: Bench, out: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "running", lambda: True)
    with api_server() as server:
        bench.with_k3s(server)
        call(["cluster", "up"])
        assert out() == ("podperf's own cluster\n", "")  # and that says that it runs already


def test_k3s_that_does_not_answer_is_named_and_not_used(bench: Bench, out: Out) -> None:
    with api_server() as server:
        bench.with_k3s(server)
    call(["cluster", "up"])
    said, told = out()
    assert said == "podperf's own cluster\n"
    assert "k3s is here, and is not used: the Kubernetes API does not answer `GET /version`" in told


def test_a_named_cluster_is_described_and_stays_as_it_is(bench: Bench, out: Out) -> None:
    with api_server(reads_nodes=False) as server, api_server("2") as other:
        path = bench.named(server)
        bench.with_k3s(other)
        bench.with_kind(other)
        call(["cluster", "up"])
        said, _ = out()
        assert said == (
            "the cluster that KUBECONFIG names: Kubernetes v1.30.1: this login may not read its nodes\n"
            "podperf changes nothing there; load the images of the pods on its nodes: `podperf image build`; for other "
            f"programs: export KUBECONFIG={path}\n"
        )
        assert bench.said == []
        assert {request.method for request in server.requests} == {"GET"}
        call(["cluster", "down"])
        assert bench.said == []


def test_a_named_cluster_that_is_the_k3s_of_this_machine_gets_the_images(bench: Bench, out: Out) -> None:
    with api_server() as server, api_server() as same:
        path = bench.named(server)
        bench.with_k3s(same)
        call(["cluster", "up"])
        assert f"export KUBECONFIG={path}\n" in out()[0]
        assert len(bench.said) == 2


def test_a_named_cluster_that_does_not_answer_is_an_error_and_no_other_is_made(bench: Bench, out: Out) -> None:
    with api_server() as server:
        bench.named(server)
    with pytest.raises(PodperfError, match="does not answer"):
        call(["cluster", "up"])
    said, told = out()
    assert not said
    assert "--own starts podperf's own cluster" in told


@pytest.mark.parametrize("path", [FOLDER / "kubeconfig", other_clusters.KIND_FOLDER / "kubeconfig", ""])
def test_the_kubeconfig_of_a_cluster_of_podperf_that_is_down_names_none(
    bench: Bench, path: Path, out: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller's shell still has the line that the last `up` printed."""
    monkeypatch.setattr(other_clusters, "KIND_FOLDER", Path("/var/lib/podperf-kind"))
    monkeypatch.setenv("KUBECONFIG", str(path))
    call(["cluster", "up"])
    assert out()[0] == "podperf's own cluster\n"


def test_kind_makes_a_cluster_and_down_deletes_it_alone(bench: Bench, out: Out) -> None:
    with api_server() as server:
        bench.with_kind(server, "of-somebody-else")
        call(["cluster", "up", "--nodes", "2"])
        created, settings, *loaded = bench.said
        config = bench.kind / "kubeconfig"
        assert created == f"kind create cluster --kubeconfig {config} --wait 120s --config - --name podperf"
        roles = [node["role"] for node in json.loads(settings)["nodes"]]
        assert roles == ["control-plane", "worker"]
        assert loaded == [f"kind load image-archive {own_image} --name podperf" for own_image in own_images()]
        assert out()[0].endswith(
            f"its nodes have the images of the pods; for other programs: export KUBECONFIG={config}\n"
        )
        call(["cluster", "status"])
        assert out()[0].startswith("a cluster of kind: Kubernetes v1.30.1")
        with pytest.raises(PodperfError, match="a cluster runs already"):
            call(["cluster", "up"])
        call(["cluster", "down"])
        assert out()[0] == "the cluster is down\n"
        assert bench.said[-1] == f"kind delete cluster --name podperf --kubeconfig {config}"
        assert (bench.programs / "clusters").read_text() == "of-somebody-else\n"
        assert not bench.kind.exists()
        call(["cluster", "down"])
        assert out()[0] == "there was no cluster that podperf made\n"


def test_a_cluster_of_kind_with_podperfs_name_that_podperf_did_not_make_stays(bench: Bench) -> None:
    with api_server() as server:
        bench.with_kind(server, "podperf")
        with pytest.raises(PodperfError, match="kind has a cluster podperf that podperf did not make"):
            call(["cluster", "up"])
        call(["cluster", "down"])
        assert bench.said == []


def test_kind_that_does_not_work_is_named_and_not_used(bench: Bench, out: Out) -> None:
    with api_server() as server:
        bench.with_kind(server)
    (bench.programs / "broken").touch()
    call(["cluster", "up"])
    said, told = out()
    assert said == "podperf's own cluster\n"
    assert "kind is here, and is not used: on this machine, `kind get clusters` ended with exit code 1: docker" in told


def test_nothing_is_left_of_a_cluster_that_kind_could_not_make(bench: Bench) -> None:
    with api_server() as server:
        bench.with_kind(server)
    (bench.programs / "full").touch()
    with pytest.raises(PodperfError, match=r"`kind create cluster .*` ended with exit code 1"):
        call(["cluster", "up"])
    assert bench.said[-1].startswith("kind delete cluster --name podperf")
    assert not bench.kind.exists()


def test_a_start_of_kind_that_was_killed_is_ended_by_down(bench: Bench, out: Out) -> None:
    with api_server() as server:
        bench.with_kind(server, "podperf")
    bench.kind.mkdir()
    call(["cluster", "down"])
    assert out()[0] == "the cluster is down\n"
    assert (bench.programs / "clusters").read_text() == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_caller_of_sudo_can_read_the_kubeconfig_of_kind(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "12345")
    monkeypatch.setenv("SUDO_GID", "12345")
    with api_server() as server:
        bench.with_kind(server)
        call(["cluster", "up"])
    assert (bench.kind / "kubeconfig").stat().st_uid == 12345
    assert bench.kind.stat().st_uid == 0
