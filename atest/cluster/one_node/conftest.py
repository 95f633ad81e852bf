"""The cluster of one node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from own_cluster import cluster, namespaces
from podperf.kubernetes.api import Api


@pytest.fixture(scope="package")
def api() -> Iterator[Api]:
    """The API of a cluster of one node, which the tests of this folder share."""
    with cluster() as found:
        yield found


@pytest.fixture(autouse=True)
def no_namespace_left(api: Api) -> Iterator[None]:
    """No test leaves a namespace of a run."""
    yield
    assert not namespaces(api)
