"""The image of the pods in a registry, for real: Debian's registry, on the loopback interface of this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from debian_programs import program
from own_cluster import awaited
from podperf.cluster.oci_archive import Archive, ImageFile, layer_of, write_archive
from podperf.cluster.pod_image import push
from podperf.errors import PodperfError

pytestmark = pytest.mark.skipif(shutil.which("skopeo") is None, reason="skopeo is not installed")
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@pytest.fixture
def image(tmp_path: Path) -> Archive:
    layer = layer_of([ImageFile("bin/program", os.urandom(100_000), 0o755)])
    return write_archive(tmp_path / "image.tar", "localhost/podperf/pod:7", [layer], ["/bin/program"], "amd64")


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """The address of a registry without TLS."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    settings = tmp_path / "registry.yml"
    settings.write_text(
        f"{{version: 0.1, storage: {{filesystem: {{rootdirectory: {tmp_path}/store}}}}, http: {{addr: '{address}'}}}}"
    )
    command = ["setpriv", "--pdeathsig", "KILL", str(program("docker-registry")), "serve", str(settings)]
    with (tmp_path / "log").open("wb") as log:
        serving = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        awaited(lambda: serving.poll() is not None or answers(address), (tmp_path / "log").read_text, 30.0)
        yield address
    finally:
        serving.terminate()
        serving.wait(30)


def answers(address: str) -> bool:
    try:
        socket.create_connection(address.split(":"), 1.0).close()  # type: ignore[arg-type]
    except OSError:
        return False
    return True


def digest_at(address: str, name: str, tag: str) -> str | None:
    """The digest of an image in the registry."""
    connection = HTTPConnection(address, timeout=10)
    connection.request("HEAD", f"/v2/{name}/manifests/{tag}", headers={"Accept": MANIFEST})
    digest = connection.getresponse().headers["Docker-Content-Digest"]
    connection.close()
    return digest


@pytest.mark.parametrize(("given", "tag"), [("podperf/pod", "7"), ("podperf/pod:mine", "mine")])
def test_the_image_is_in_the_registry_with_its_own_digest(registry: str, image: Archive, given: str, tag: str) -> None:
    told = push(image, f"{registry}/{given}", plain_http=True)
    assert told == f"{registry}/podperf/pod:{tag} and {registry}/podperf/pod@{image.digest}"
    assert digest_at(registry, "podperf/pod", tag) == image.digest


def test_a_registry_that_takes_no_image_says_why(registry: str, image: Archive) -> None:
    with pytest.raises(PodperfError, match=r"could not be pushed to .*/podperf/pod:7: skopeo says .*HTTPS client"):
        push(image, f"{registry}/podperf/pod")
    with pytest.raises(PodperfError, match=r"could not be pushed to .*: skopeo says .*must be lowercase"):
        push(image, f"{registry}/Podperf/pod", plain_http=True)
