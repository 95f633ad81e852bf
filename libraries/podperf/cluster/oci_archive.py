"""Writes images of containers as archives that `ctr`, `podman` and `docker` load, without a registry.

An archive is an OCI image layout (OCI image specification 1.1, image-layout.md), with a manifest.json for versions of
docker before 25. The same content gives the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIGURATION = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_GZIP = 1  # the fastest level


@dataclass(frozen=True)
class ImageFile:
    """A file of an image. With `link`, a symbolic link to that path."""

    path: str
    content: bytes = b""
    mode: int = 0o644
    link: str | None = None
    folder: bool = False


@dataclass(frozen=True)
class Archive:
    """An archive with one image."""

    path: Path
    name: str
    digest: str  # of the image's manifest, as `sha256:…`


def layer_of(entries: Sequence[ImageFile]) -> bytes:
    """A layer (tar) with these files, which belong to root."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in entries:
            member = tarfile.TarInfo(entry.path)
            member.mode = entry.mode
            if entry.link is not None:
                member.type, member.linkname = tarfile.SYMTYPE, entry.link
            elif entry.folder:
                member.type, member.mode = tarfile.DIRTYPE, entry.mode | 0o111
            else:
                member.size = len(entry.content)
            tar.addfile(member, io.BytesIO(entry.content))
    return buffer.getvalue()


def write_archive(path: Path, name: str, layers: Sequence[bytes], command: Sequence[str], architecture: str) -> Archive:
    """Write an image of these layers (tar). `command` is what a container runs if its pod names nothing else."""
    configuration = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Cmd": list(command), "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer) for layer in layers]},
    }
    packed = [gzip.compress(layer, _GZIP, mtime=0) for layer in layers]
    blobs: dict[str, bytes] = {}
    described_configuration = _blob(blobs, _CONFIGURATION, _json(configuration))
    described_layers = [_blob(blobs, _LAYER, each) for each in packed]
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": described_configuration,
        "layers": described_layers,
    }
    described = _blob(blobs, _MANIFEST, _json(manifest))
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    index = {"schemaVersion": 2, "manifests": [{**described, "annotations": names}]}
    of_docker = {
        "Config": _path(described_configuration["digest"]),
        "RepoTags": [name],
        "Layers": [_path(described_layer["digest"]) for described_layer in described_layers],
    }
    top = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": _json(index)}
    _write(path, {**top, "manifest.json": _json([of_docker]), **{_path(key): value for key, value in blobs.items()}})
    return Archive(path, name, described["digest"])


def read_archive(path: Path) -> Archive:
    """Name and digest of the image in an archive."""
    with tarfile.open(path) as tar:
        index = tar.extractfile("index.json")
        assert index is not None
        (manifest,) = json.load(index)["manifests"]
    return Archive(path, manifest["annotations"]["org.opencontainers.image.ref.name"], manifest["digest"])


def _blob(blobs: dict[str, bytes], kind: str, content: bytes) -> dict[str, Any]:
    digest = _digest(content)
    blobs[digest] = content
    return {"mediaType": kind, "digest": digest, "size": len(content)}


def _write(path: Path, files: Mapping[str, bytes]) -> None:
    half = path.with_name(f"{path.name}.half")
    with tarfile.open(half, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            tar.addfile(member, io.BytesIO(content))
    half.replace(path)


def _path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
