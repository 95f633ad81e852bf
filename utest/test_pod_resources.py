"""The answer of a kubelet to the question which CPUs and devices its containers have."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.kubernetes.pod_resources import ToldByKubelet, read_answer, told_by_kubelet
from protocol_buffers import field, varint
from scripted_host import ScriptedHost


def pod(name: str, namespace: str, cpus: tuple[int, ...], devices: dict[str, list[str]]) -> bytes:
    """A message PodResources with one container."""
    numa = field(3, field(1, varint(1 << 3) + varint(1)))  # TopologyInfo, with a field that is a number
    given = b"".join(
        field(2, field(1, resource.encode()) + b"".join(field(2, each.encode()) for each in names) + numa)
        for resource, names in devices.items()
    )
    container = field(1, b"main") + given + field(3, b"".join(map(varint, cpus)))
    return field(1, name.encode()) + field(2, namespace.encode()) + field(3, container)


def answer(*pods: bytes) -> bytes:
    """A frame of gRPC with a ListPodResourcesResponse."""
    message = b"".join(field(1, each) for each in pods)
    return b"\0" + len(message).to_bytes(4, "big") + message


OTHER = pod("pod1-cafe", "of-others", (5,), {"intel.com/vf": ["0000:41:10.0"]})
OURS = pod("pod1-cafe", "podperf-cafe", (1, 200), {"intel.com/vf": ["0000:21:10.0", "0000:21:10.2"]})
TOLD = ToldByKubelet((1, 200), {"intel.com/vf": frozenset({"0000:21:10.0", "0000:21:10.2"})})


def test_a_pod_is_found_by_its_name_and_its_namespace() -> None:
    assert read_answer(answer(OTHER, OURS), "pod1-cafe", "podperf-cafe") == TOLD
    assert read_answer(answer(OTHER), "pod1-cafe", "podperf-cafe") is None
    assert TOLD.describe() == {"cpus": "1,200", "devices": {"intel.com/vf": ["0000:21:10.0", "0000:21:10.2"]}}


def test_devices_of_one_resource_may_come_in_several_messages() -> None:
    """A kubelet lists those of each NUMA node apart."""
    container = b"".join(field(2, field(1, b"a/b") + field(2, name)) for name in (b"x", b"y"))
    found = read_answer(answer(field(1, b"p") + field(2, b"n") + field(3, container)), "p", "n")
    assert found is not None and found.devices == {"a/b": frozenset({"x", "y"})} and found.cpus == ()


def test_the_kubelet_that_knows_the_pod_is_asked() -> None:
    lines = (answer(OTHER), b"", b"\0\0\0\0\5\n\x7fgarbage", answer(OURS))
    host = ScriptedHost(answers={"sh -c": "\n".join(b64encode(each).decode() for each in lines)})
    assert told_by_kubelet(host, "pod1-cafe", "podperf-cafe") == TOLD
    assert told_by_kubelet(ScriptedHost(patient=True), "pod1-cafe", "podperf-cafe") is None, "no kubelet answers"


@given(st.binary())
def test_a_damaged_answer_is_none_or_refused(said: bytes) -> None:
    for each in (said, answer(said), answer(OURS)[: len(said)] + said):
        try:
            assert isinstance(read_answer(each, "pod1-cafe", "podperf-cafe"), ToldByKubelet | None)
        except ValueError:
            continue


@given(st.lists(st.integers(0, 2**63 - 1), max_size=5, unique=True))
def test_each_number_of_a_cpu_is_read(cpus: list[int]) -> None:
    found = read_answer(answer(pod("p", "n", tuple(cpus), {})), "p", "n")
    assert found is not None and found.cpus == tuple(sorted(cpus))


@pytest.mark.parametrize("end", range(1, 20))
def test_an_answer_that_was_cut_off_is_refused(end: int) -> None:
    with pytest.raises(ValueError, match="the message ends in a"):
        read_answer(answer(OURS)[:-end], "pod1-cafe", "podperf-cafe")
