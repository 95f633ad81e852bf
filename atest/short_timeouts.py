"""A listener of Robot Framework for runs that lose a machine behind SSH. The runs then notice the loss in a few
seconds."""

from __future__ import annotations

from functools import partial

from podperf.testbed import access
from ssh_machine import SHORT_TIMEOUTS

ROBOT_LISTENER_API_VERSION = 3

access.Login = partial(access.Login, timeouts=SHORT_TIMEOUTS)  # type: ignore[misc, assignment]
