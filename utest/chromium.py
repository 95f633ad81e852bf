"""A page in a browser: headless Chromium, controlled over a pipe by its DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTHS = (390, 800, 1280)  # a telephone, a tablet, a screen
_FLAGS = (
    "--headless",
    "--no-sandbox",  # tests run as root
    "--disable-gpu",
    "--hide-scrollbars",  # as on a telephone
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
_PATIENCE = 60  # seconds


class Page:
    """One page of a browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._session: str | None = None
        self._sent = 0
        self._read = b""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._call("Page.enable")

    def open(self, path: Path) -> None:
        """Load a file, and return when its layout is ready."""
        self._call("Page.navigate", url=path.resolve().as_uri())
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def show(self, width: int, *, dark: bool = False) -> None:
        """Lay the page out for a screen of this width in CSS pixels."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", media="", features=[scheme])

    def print(self) -> None:
        """Lay the page out for printing."""
        self._call("Emulation.setEmulatedMedia", media="print", features=[])

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression; the page's own policy does not bind the debugger."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise ValueError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def paper(self) -> bytes:
        """The page as PDF, printed by its own style."""
        answer = self._call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        return base64.b64decode(answer["data"])

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._sent += 1
        request = {"id": self._sent, "method": method, "params": parameters}
        if self._session is not None:
            request["sessionId"] = self._session
        os.write(self._to, json.dumps(request).encode() + b"\0")
        while (answer := self._message()).get("id") != self._sent:
            pass
        if "error" in answer:
            raise ValueError(f"{method}: {answer['error']}")
        return dict(answer["result"])

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            ready, _, _ = select.select([self._from], [], [], _PATIENCE)
            if not ready:
                raise TimeoutError(f"the browser has said nothing for {_PATIENCE} s")
            chunk = os.read(self._from, 1 << 20)
            if not chunk:
                raise ConnectionError("the browser has ended")
            self._read += chunk
        text, _, self._read = self._read.partition(b"\0")
        return dict(json.loads(text))


@contextlib.contextmanager
def browser() -> Iterator[Page]:
    """A browser with one page, which ends with the block. Without Chromium, the test is skipped."""
    if PROGRAM is None:
        pytest.skip("no Chromium is installed (package chromium), so nobody sees how the page is laid out")
    for_browser, to_browser = os.pipe()
    from_browser, of_browser = os.pipe()
    # Of its many processes the last may still write while the profile is taken away.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The browser reads descriptor 3 and writes descriptor 4. The pipes have other numbers here.
        script = f'exec "$0" "$@" 3<&{for_browser} 4>&{of_browser}'
        process = subprocess.Popen(
            ["bash", "-c", script, PROGRAM, *_FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(for_browser, of_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(for_browser)
        os.close(of_browser)
        try:
            yield Page(to_browser, from_browser)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(to_browser)
            os.close(from_browser)
