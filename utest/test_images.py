"""Images of pods as archives."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
from pathlib import Path

import pytest

from podperf.__main__ import call
from podperf.cluster import pod_image
from podperf.cluster.oci_archive import Archive, ImageFile, layer_of, read_archive, write_archive
from podperf.cluster.pod_image import (
    CHECKOUT,
    WHOLE_PACKAGES,
    _copied_to,
    filtered,
    locked_files,
    podperf_files,
    push,
)
from podperf.errors import BadArguments, PodperfError, Unavailable
from scripted_host import ScriptedHost

FILES = [
    ImageFile("bin", folder=True),
    ImageFile("bin/program", b"\x7fELF", 0o755),
    ImageFile("bin/sh", link="program"),
]


def contents(archive: Path) -> dict[str, bytes]:
    """The files of an archive."""
    with tarfile.open(archive) as tar:
        found = {each.name: tar.extractfile(each) for each in tar}
        return {name: file.read() for name, file in found.items() if file is not None}


def test_every_blob_has_its_digest_as_its_name(tmp_path: Path) -> None:
    made = write_archive(tmp_path / "a.tar", "localhost/x:1", [layer_of(FILES)], ["/bin/sh"], "amd64")
    blobs = {name: content for name, content in contents(made.path).items() if name.startswith("blobs/sha256/")}
    assert len(blobs) == 3
    for name, content in blobs.items():
        assert hashlib.sha256(content).hexdigest() == Path(name).name


def test_the_index_leads_to_the_configuration_and_the_layers(tmp_path: Path) -> None:
    made = write_archive(tmp_path / "a.tar", "localhost/x:1", [layer_of(FILES)], ["/bin/sh"], "arm64")
    found = contents(made.path)
    (described,) = json.loads(found["index.json"])["manifests"]
    assert described["digest"] == made.digest
    manifest = json.loads(found[f"blobs/{made.digest.replace(':', '/')}"])
    configuration = json.loads(found[f"blobs/{manifest['config']['digest'].replace(':', '/')}"])
    assert (configuration["architecture"], configuration["config"]["Cmd"]) == ("arm64", ["/bin/sh"])
    (layer,) = manifest["layers"]
    content = gzip.decompress(found[f"blobs/{layer['digest'].replace(':', '/')}"])
    assert configuration["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(content).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert [(each.name, each.mode, each.linkname) for each in tar] == [
            ("bin", 0o755, ""),
            ("bin/program", 0o755, ""),
            ("bin/sh", 0o644, "program"),
        ]


def test_old_docker_finds_the_same_blobs(tmp_path: Path) -> None:
    made = write_archive(tmp_path / "a.tar", "localhost/x:1", [layer_of(FILES)], ["/bin/sh"], "amd64")
    found = contents(made.path)
    (image,) = json.loads(found["manifest.json"])
    assert image["RepoTags"] == ["localhost/x:1"]
    assert {image["Config"], *image["Layers"]} <= set(found)


def test_equal_content_gives_equal_bytes(tmp_path: Path) -> None:
    first, second = (
        write_archive(tmp_path / name, "localhost/x:1", [layer_of(FILES)], ["/bin/sh"], "amd64").path.read_bytes()
        for name in ("a.tar", "b.tar")
    )
    assert first == second


def test_name_and_digest_are_read_back(tmp_path: Path) -> None:
    made = write_archive(tmp_path / "a.tar", "localhost/x:1", [layer_of(FILES)], ["/bin/sh"], "amd64")
    assert read_archive(made.path) == made


def test_what_no_pod_reads_is_left_out() -> None:
    files = [
        ImageFile(f"./{name}")
        for name in ("usr/bin/ip", "usr/share/doc/x", "var/lib/dpkg", "variant", "dev/null", "usr/lib/x/lib.a")
    ]
    left_out = ("dev", "usr/share", "var", "*.a")
    with tarfile.open(fileobj=io.BytesIO(filtered(layer_of(files), left_out))) as tar:
        assert tar.getnames() == ["./usr/bin/ip", "./variant"]


@pytest.mark.parametrize(
    ("locked", "found"),
    [("no-such-package==1.0 \\\n", "is not installed"), ("PyYAML==0.1 \\\n", "is installed as [0-9.]+")],
)
def test_an_environment_older_than_the_lock_makes_no_image(locked: str, found: str, tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text(locked, encoding="utf-8")
    with pytest.raises(PodperfError, match=f"{found}: requirements.lock is newer than that environment; once: sudo"):
        list(locked_files(lock))


def test_a_package_for_another_python_may_be_missing(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text("no-such-package==1.0 ; python_full_version < '3' \\\n", encoding="utf-8")
    assert not list(locked_files(lock))


def test_files_of_an_image_are_roots_and_give_nobody_other_rights() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, mode in (("./bin/chage", 0o2755), ("./tmp", 0o1777), ("./usr/share/doc", 0o644)):
            member = tarfile.TarInfo(name)
            member.mode, member.gid, member.gname = mode, 42, "shadow"
            tar.addfile(member)
    with tarfile.open(fileobj=io.BytesIO(filtered(buffer.getvalue(), ["usr/share"]))) as tar:
        found = {each.name: (each.mode, each.gid, each.gname) for each in tar}
    assert found == {"./bin/chage": (0o755, 0, "root"), "./tmp": (0o1777, 0, "root")}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_copy_of_an_image_is_not_written_where_somebody_else_chooses(tmp_path: Path) -> None:
    archive, victim, file = (tmp_path / name for name in ("archive", "victim", "copy.tar"))
    archive.write_bytes(b"image")
    victim.write_bytes(b"precious")
    file.symlink_to(victim)
    os.chown(file, 12345, 12345, follow_symlinks=False)  # planted in a folder such as /tmp
    with pytest.raises(PodperfError, match=r"the user 12345 owns .*/copy.tar, and nodes would run"):
        _copied_to(archive, file)
    file.unlink()
    file.write_bytes(b"")
    os.chown(file, 12345, 12345)  # its owner could change the image later
    with pytest.raises(PodperfError, match=r"the user 12345 owns .*/copy.tar"):
        _copied_to(archive, file)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(PodperfError, match="is no regular file"):
        _copied_to(archive, file)
    file.unlink()
    file.symlink_to(victim)
    assert _copied_to(archive, file) == file
    assert (file.read_bytes(), victim.read_bytes()) == (b"image", b"precious")
    tmp_path.chmod(0o1777)  # as /tmp: nobody else can replace the copy
    assert _copied_to(archive, file) == file
    os.chown(tmp_path, 0, 12345)
    tmp_path.chmod(0o775)
    with pytest.raises(PodperfError, match="the members of the group 12345 can write to"):
        _copied_to(archive, file)


@pytest.mark.parametrize(
    "words", [["build", "--whole", "FILE"], ["build", "FILE", "--whole"], ["--whole", "build", "FILE"]]
)
def test_an_option_may_stand_before_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    made = tmp_path / "cached.tar"
    made.write_bytes(b"image")
    asked: list[object] = []

    def ready(_host: object, _say: object, kind: object) -> Archive:
        asked.append(kind)
        return Archive(made, "localhost/podperf/whole:1", "sha256:1")

    monkeypatch.setattr(pod_image, "ready_image", ready)
    file = tmp_path / "podperf.tar"
    assert call(["image", *(str(file) if word == "FILE" else word for word in words)]) == 0
    assert asked == [pod_image.WHOLE] and file.read_bytes() == b"image"
    assert f"docker load --input {file}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        *((["push", *place], "needs a place in a registry") for place in ([], ["localhost"], ["registry/"], ["/name"])),
        (["build", "--plain-http"], "--plain-http is for image push"),
    ],
)
def test_arguments_of_image_that_do_not_go_together_are_named(arguments: list[str], said: str) -> None:
    with pytest.raises(BadArguments, match=said):
        call(["image", *arguments])


@pytest.mark.parametrize(
    ("distribution", "components"), [("debian", "main,non-free"), ("ubuntu", "main,universe,multiverse")]
)
def test_only_the_image_with_netperf_asks_for_packages_that_are_not_free(
    tmp_path: Path, distribution: str, components: str
) -> None:
    for image, asked in ((pod_image.POD, []), (pod_image.WITH_NETPERF, [f"--components={components}"])):
        host = ScriptedHost(patient=True)
        pod_image._gather(host, {"ID": distribution, "VERSION_CODENAME": "n"}, image, tmp_path / "tar")
        (command,) = [each for each in host.commands if "mmdebstrap" in each and "which" not in each]
        assert [each for each in command.split() if each.startswith("--components")] == asked


def test_the_dockerfile_has_the_packages_and_files_of_the_image() -> None:
    *_, last = Path(pod_image.__file__).with_name("Dockerfile").read_text().replace("\\\n", " ").split("\nFROM ")
    (installed,) = re.findall(r"--no-install-recommends +(.*?) +&&", last)
    assert sorted(installed.split()) == sorted(WHOLE_PACKAGES)
    copied = [each for words in re.findall(r"^COPY (?!--)(.*) \S+$", last, re.MULTILINE) for each in words.split()]
    assert sorted(copied) == sorted(CHECKOUT)
    (link,) = [each for each in podperf_files() if each.path == "bin/ping"]
    assert f"ln --symbolic {link.link} /{link.path}\n" in last


def test_without_skopeo_a_push_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "which").symlink_to(str(shutil.which("false")))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="apt-get install skopeo"):
        push(Archive(tmp_path / "a.tar", "localhost/x:1", "sha256:1"), "registry/x")
