"""An API server says of an expired login only that it is not authorized. podperf says why."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest

from podperf.cluster.core import LIFE, Authority
from podperf.kubernetes.client import expired

NOW = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)


def token(**claims: object) -> str:
    """A JWT. Nobody checks its signature here."""
    parts = (json.dumps(each).encode() for each in ({"alg": "RS256"}, claims))
    return ".".join([*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), "signature"])


def test_an_expired_certificate_is_named_with_its_end() -> None:
    then = NOW - LIFE - timedelta(hours=2)
    certificate = Authority(then).certify("somebody").certificate
    assert expired(certificate, None, NOW) == "the client certificate of the login expired on 2026-11-25 10:00 UTC"
    assert not expired(certificate, None, then)


def test_an_expired_token_is_named_with_its_end() -> None:
    old = token(exp=NOW.timestamp() - 60, sub="system:serviceaccount:podperf:podperf")
    assert expired(None, old, NOW) == "the token of the login expired on 2026-11-25 11:59 UTC"
    assert not expired(None, token(exp=NOW.timestamp() + 60), NOW)


@pytest.mark.parametrize("other", ["", "opaque", "a.b.c", token(), token(exp="soon"), token(exp=1e400), token(exp=[])])
def test_a_token_without_an_end_is_not_expired(other: str) -> None:
    assert not expired(b"no certificate", other, NOW)
