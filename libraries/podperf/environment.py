"""Secrets in the environment. podperf takes them out of it: the programs that podperf starts would inherit them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

PASSWORD_VARIABLE = "PODPERF_SSH_PASSWORD"
RESULTS_TOKEN = "PODPERF_RESULTS_TOKEN"

_taken: dict[str, str] = {}


def take_password() -> str | None:
    """The password for machines behind SSH. Takes all secrets out of the environment; a second call has it, too."""
    for name in (PASSWORD_VARIABLE, RESULTS_TOKEN):
        if name in os.environ:
            _taken[name] = os.environ.pop(name)
    return _taken.get(PASSWORD_VARIABLE) or None


@contextmanager
def secrets_put_back() -> Iterator[None]:
    """The secrets are in the environment, for variables of Robot Framework, until `Open Testbed` takes them out."""
    os.environ.update(_taken)
    try:
        yield
    finally:
        take_password()
