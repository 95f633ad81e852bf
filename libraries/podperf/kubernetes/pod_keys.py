"""Checks the keys of a pod's specification that a topology can have: resources, volumes, and the security context.

The API server checks their content. Values with which podperf's programs could not measure are refused here.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Literal, get_args

from podperf.hosts.run_directory import RUN_DIRECTORY
from podperf.kubernetes.manifests import IN_CONTAINERS, OWN_VOLUMES, PodWishes
from podperf.topology import WrongSetting

SecurityLevel = Literal["privileged", "baseline", "restricted"]  # from the one that allows most to the strictest
SECURITY_LEVELS: tuple[SecurityLevel, ...] = get_args(SecurityLevel)

PAGES: Mapping[str, int] = {"2Mi": 2, "1Gi": 1024}  # MiB
_UNITS: Mapping[str, int] = {"Mi": 1, "Gi": 1024}  # MiB
_AMOUNT: Mapping[str, Any] = {"title": "an amount such as 64Mi", "type": "string", "pattern": "^[1-9][0-9]*[MG]i$"}
_CAPABILITY = {"title": "a capability without CAP_, such as NET_ADMIN", "type": "string", "pattern": "^[A-Z_]+$"}
_LABEL = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
_NAME = {"title": "a name of small letters, digits and -", "type": "string", "pattern": _LABEL}
_CAPABILITIES = {"title": "names of capabilities", "type": "array", "items": _CAPABILITY}
_PATH = {"title": "an absolute path", "type": "string", "pattern": "^/[^:]*$"}
_NUMBER = {"title": "the number of a user or a group", "type": "integer", "minimum": 0}
_TEXT = {"title": "a text", "type": "string"}
_YES = {"title": "yes or no", "type": "boolean"}
_AS_IN_A_POD = {"title": "a mapping, as in a pod's specification", "type": "object"}
_SOURCES = (
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "fc", "hostPath", "image", "iscsi", "nfs"),
    *("persistentVolumeClaim", "projected", "secret"),
)
_SOURCES_OF_RESTRICTED = {*_SOURCES} - {"fc", "hostPath", "image", "iscsi", "nfs"}
_MOUNT: Mapping[str, Any] = {
    **{"name": _NAME, "mountPath": _PATH, "readOnly": _YES},
    **dict.fromkeys(("subPath", "subPathExpr", "mountPropagation", "recursiveReadOnly"), _TEXT),
}
_OF_POD: Mapping[str, Any] = {  # SECURITY_OF_POD
    "fsGroup": _NUMBER,
    "fsGroupChangePolicy": _TEXT,
    "supplementalGroups": {"title": "numbers of groups", "type": "array", "items": _NUMBER},
    "sysctls": {"title": "settings of the kernel, each with name and value", "type": "array", "items": _AS_IN_A_POD},
}


def _strictly(title: str, properties: Mapping[str, Any], required: Sequence[str] = ()) -> Mapping[str, Any]:
    """The schema of a mapping with these keys and no others."""
    keys = {"additionalProperties": False, "properties": properties, "required": list(required)}
    return {"title": title, "type": "object", **keys}


def _list(title: str, of: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"title": title, "type": "array", "items": of, "default": []}


HUGEPAGES: Mapping[str, Any] = _strictly(
    "an amount of hugepages for each of their sizes, such as {2Mi: 64Mi}", dict.fromkeys(PAGES, _AMOUNT)
)
RESOURCE: Mapping[str, Any] = {
    "title": "a resource, such as intel.com/vf",
    "type": "string",
    "pattern": "^[a-z0-9.-]+/[A-Za-z0-9._-]+$",
}
PROPERTIES: Mapping[str, Any] = {
    "resources": {
        "title": "further resources for each pod, such as devices of a device plug-in",
        "type": "object",
        "additionalProperties": {"title": "amount", "type": "integer", "minimum": 1},
        "propertyNames": RESOURCE,
        "default": {},
    },
    "volumes": _list(
        "volumes of the pods, as in a pod's specification",
        _strictly("a volume", {"name": _NAME, **dict.fromkeys(_SOURCES, _AS_IN_A_POD)}, ["name"]),
    ),
    "volume_mounts": _list(
        "the paths of these volumes, as `volumeMounts` in a container's specification",
        _strictly("a mount", _MOUNT, ["name", "mountPath"]),
    ),
    "security_context": {
        **_strictly(
            "the security context, with the keys of a pod's and of a container's",
            {
                "allowPrivilegeEscalation": _YES,
                "appArmorProfile": _AS_IN_A_POD,
                "capabilities": _strictly(
                    "capabilities to add and to drop",
                    dict.fromkeys(("add", "drop"), _CAPABILITIES),
                ),
                **dict.fromkeys(("privileged", "readOnlyRootFilesystem", "runAsNonRoot"), _YES),
                **dict.fromkeys(("runAsGroup", "runAsUser"), _NUMBER),
                **dict.fromkeys(("seLinuxOptions", "seccompProfile"), _AS_IN_A_POD),
                **_OF_POD,
            },
        ),
        "default": {},
    },
}
# Folders of a container in which podperf's programs, and the kernel's facts that they read, are.
_NEEDED = (
    *("/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/proc/sys", "/sbin", "/sys", "/sys/class/net"),
    *("/sys/fs/cgroup", "/usr/bin", "/usr/lib", "/usr/sbin", "/usr/local/bin"),
)


def refuse_wrong(settings: Mapping[str, Any]) -> None:
    """Raises WrongSetting for volumes that hide what podperf needs, or that nobody has named."""
    names = [each["name"] for each in settings["volumes"]]
    for number, name in enumerate(names):
        if name in OWN_VOLUMES:
            raise WrongSetting("volumes", number, "name", allowed=f"another name, as podperf has a volume {name}")
        if len(settings["volumes"][number]) != 2:
            raise WrongSetting("volumes", number, allowed="a name, and one of the sources of volumes, such as emptyDir")
    for number, mount in enumerate(settings["volume_mounts"]):
        if mount["name"] not in names:
            allowed = f"one of `volumes`, which has {', '.join(names) or 'none'}"
            raise WrongSetting("volume_mounts", number, "name", allowed=allowed)
        if _hides(mount["mountPath"]):
            allowed = "a path that hides no folder which podperf needs in the pod"
            raise WrongSetting("volume_mounts", number, "mountPath", allowed=allowed)


def _hides(path: str) -> bool:
    """Whether a volume at this path of a container hides a folder that podperf needs there."""
    plain = posixpath.normpath(path).replace("//", "/")
    there = PurePosixPath(plain.removeprefix("/var") if plain.startswith("/var/run/") else plain)  # a link in images
    above = any(PurePosixPath(each).is_relative_to(there) for each in (*_NEEDED, str(RUN_DIRECTORY)))
    return above or there.is_relative_to(RUN_DIRECTORY)


def amounts_of(hugepages: Mapping[str, str]) -> dict[str, str]:
    """The resources of amounts of hugepages by their sizes. WrongSetting if they are not whole pages."""
    for size, amount in hugepages.items():
        if mebibytes(amount) % PAGES[size]:
            raise WrongSetting("hugepages", size, allowed=f"a multiple of {size}")
    return {f"hugepages-{size}": amount for size, amount in hugepages.items()}


def mebibytes(amount: str) -> int:
    return int(amount[:-2]) * _UNITS[amount[-2:]]


def lacks(security: Mapping[str, Any], needed: Collection[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The keys of a container's security context that take something from a program of root's that needs it.

    Each has the values that it could have. `needed` are the capabilities of the program.
    """
    if security.get("runAsUser"):
        yield ("runAsUser",), "0, as the program in the pod needs root"
    if security.get("runAsNonRoot"):
        yield ("runAsNonRoot",), "false, as the program in the pod needs root"
    added, dropped = ({*security["capabilities"].get(key, ())} for key in ("add", "drop"))
    if any(each in dropped or ("ALL" in dropped and each not in added) for each in needed):
        yield ("capabilities", "drop"), f"no {' or '.join(needed)}, which the program in the pod needs"


def level_of(wishes: PodWishes, least: SecurityLevel) -> SecurityLevel:
    """The strictest pod security level that pods with these wishes satisfy. They would satisfy `least` without them."""
    added = {*wishes.security.get("capabilities", {}).get("add", ())}
    sources = {key for volume in wishes.volumes for key in volume if key != "name"}
    if wishes.security.get("privileged") or "hostPath" in sources or not added <= {*IN_CONTAINERS}:
        return "privileged"
    if sources <= _SOURCES_OF_RESTRICTED and added <= {"NET_BIND_SERVICE"} and wishes.security.get("runAsUser") != 0:
        return least
    return min(least, "baseline", key=SECURITY_LEVELS.index)
