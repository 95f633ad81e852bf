"""A pytest plugin for the project's own tests: a line with the test that runs and the time left, instead of dots."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import pytest

from time_left import LEARNED, STAGES_VARIABLE, USUAL, Expected, estimate, planned_stages, written

REDRAWN = 1.0  # seconds between two looks of the line on a terminal
LINE_INTERVAL = 10.0  # seconds between two lines where the output is no terminal


class TimeLeft:
    """One changing line on a terminal, elsewhere a line now and then; failures stay."""

    def __init__(self, stream: TextIO, stage: str, expected: Expected, stages: Sequence[str]) -> None:
        self._stream = stream
        self._stage = stage
        self._expected = expected
        self._stages = stages
        self._later = expected.later_stages(stage, stages)
        self._expected_seconds: dict[str, float] = {}  # of each test of this stage
        self._seconds: dict[str, float] = {}  # of each test that has ended
        self._workers = 1  # processes that share the tests (pytest-xdist)
        self._current = ""
        self._began = self._last_line = time.monotonic()
        self._running: dict[str, float] = {}  # when each running test began
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._clock = threading.Thread(target=self._watch, daemon=True)

    # --- pytest's hooks ----------------------------------------------------------------------------------------------

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._begin([each.nodeid for each in session.items if not is_left_out(each)], workers=1)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: Sequence[str]) -> None:
        """A worker of pytest-xdist has found the tests. Each of them finds all."""
        if self._expected_seconds:
            self.plan(ids, self._workers + 1)
        else:
            self._begin(ids, workers=1)

    def _begin(self, tests: Sequence[str], workers: int) -> None:
        self.plan(tests, workers)
        self._began = time.monotonic()
        self._last_line = self._began - LINE_INTERVAL
        self._clock.start()

    def plan(self, tests: Sequence[str], workers: int = 1) -> None:
        """So many processes will run these tests. Others, which are skipped, take no time and are not counted."""
        self._expected_seconds = self._expected.of(tests, self._stage, self._stages, workers)
        self._workers = workers

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        with self._lock:
            self._current = nodeid
            self._running[nodeid] = time.monotonic()
        self._show()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        with self._lock:
            began = self._running.pop(nodeid, None)
            if began is not None and nodeid in self._expected_seconds:
                self._seconds[nodeid] = time.monotonic() - began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._write(f"FAILED {report.nodeid} ({report.when})", stays=True)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Iterator[None]:
        """pytest counts the outcome, and writes no dot."""
        category, *_ = yield
        return category, "", ""

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._ended.set()
        if self._clock.is_alive():
            self._clock.join()
        if self._stream.isatty():
            self._write("", stays=False)
        everything = len(self._seconds) == len(self._expected_seconds) and exitstatus == 0
        spent = {self._stage: time.monotonic() - self._began} if everything and STAGES_VARIABLE in os.environ else {}
        self._expected.write(LEARNED, stages=spent, tests=self._seconds)

    # --- the line ----------------------------------------------------------------------------------------------------

    @property
    def seconds_left(self) -> float:
        """The remaining seconds of all that `podperf test` runs. A late test is expected to end now."""
        now = time.monotonic()
        done = sum(self._expected_seconds[each] for each in self._seconds) / self._workers
        spent = sum(self._seconds.values()) / self._workers
        here = sum(each for name, each in self._expected_seconds.items() if name not in self._seconds) / self._workers
        running = list(self._running.items())  # a copy: another thread may call this
        begun = sum(min(now - began, self._expected_seconds.get(name, 0.0)) for name, began in running) / self._workers
        return max(0.0, estimate(here + self._later, spent, done) - begun)

    def _line(self) -> str:
        file, _, test = self._current.partition("::")
        name = f"{Path(file).name}: {test.replace('_', ' ').removeprefix('test ')}"
        begun = f"[{min(len(self._seconds) + 1, len(self._expected_seconds))}/{len(self._expected_seconds)}]"
        return f"{self._stage} {begun} {written(self.seconds_left)} left | {name}"

    def _watch(self) -> None:
        while not self._ended.wait(REDRAWN):
            self._show()

    def _show(self) -> None:
        if self._current and (self._stream.isatty() or time.monotonic() - self._last_line >= LINE_INTERVAL):
            self._last_line = time.monotonic()
            self._write(self._line(), stays=not self._stream.isatty())

    def _write(self, text: str, *, stays: bool) -> None:
        with self._lock, suppress(OSError):
            if self._stream.isatty():
                width = shutil.get_terminal_size().columns - 1
                text = f"\r\x1b[K{text if stays else text[:width]}"
            self._stream.write(f"{text}\n" if stays else text)
            self._stream.flush()


def is_left_out(test: pytest.Item) -> bool:
    """Whether the test's marks already say that it is skipped. Tests on the virtual worker mostly are."""
    return any(mark.args[:1] == (True,) for mark in test.iter_markers("skipif"))


def pytest_configure(config: pytest.Config) -> None:
    """Take over from pytest's dots. The output is pytest's own, also while a test's output is captured."""
    worker = hasattr(config, "workerinput")  # of pytest-xdist: the process that started it shows its tests
    if config.option.verbose <= 0 and not config.option.collectonly and not worker:
        stream = os.fdopen(os.dup(sys.__stdout__.fileno() if sys.__stdout__ else 1), "w")
        stage = os.environ.get("TOX_ENV_NAME", "tests")
        plugin = TimeLeft(stream, stage, Expected.read(USUAL, LEARNED), planned_stages())
        config.pluginmanager.register(plugin)
