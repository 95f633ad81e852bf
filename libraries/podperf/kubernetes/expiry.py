"""Whether a login has expired. An API server only says that the login is not authorized. No I/O."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from datetime import UTC, datetime

from cryptography import x509


def expired(certificate: bytes | None, token: str | None, now: datetime) -> str:
    """The reason in words, if the client's certificate (PEM) or the token (a JWT) of a login has expired."""
    ends = {"client certificate": _end_of_certificate(certificate), "token": _end_of_token(token)}
    said = [f"the {what} of the login expired on {end:%Y-%m-%d %H:%M} UTC" for what, end in ends.items() if end < now]
    return "; ".join(said)


_NEVER = datetime.max.replace(tzinfo=UTC)


def _end_of_certificate(certificate: bytes | None) -> datetime:
    with suppress(ValueError):
        return x509.load_pem_x509_certificate(certificate or b"").not_valid_after_utc
    return _NEVER


def _end_of_token(token: str | None) -> datetime:
    with suppress(ValueError, LookupError, TypeError, OverflowError, OSError):
        _, content, _ = (token or "").split(".")
        claims = json.loads(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)))
        return datetime.fromtimestamp(claims["exp"], UTC)
    return _NEVER
