"""The TRex tester fulfils the testers' contract in recorded dialogues with a real TRex."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from podperf.frames import Headers
from podperf.testers.base import Tester
from tester_contract import *  # noqa: F403
from tester_contract import SECONDS
from trex_dialogue import FOLDER, Dialogue, played


def dialogue_of(test: str) -> Path:
    """The file with the dialogue of this test. It was recorded when the test of this name ran with a real TRex."""
    return FOLDER / f"{''.join(c if c.isalnum() else '-' for c in test.removeprefix('test_')).strip('-')}.json"


class PlayedBench:
    """A recorded dialogue, with the frames that the system under test saw."""

    seconds = SECONDS  # the duration in the recording

    def __init__(self, dialogue: Dialogue) -> None:
        self.tester: Tester = played(dialogue)
        self._seen = list(dialogue.seen)

    def lose_one_in(self, number: int) -> None:
        """These frames were already lost in the recording."""

    def flows_seen(self) -> int:
        return self._seen.pop(0)

    def frames_elsewhere(self) -> int:
        return self._seen.pop(0)

    def sound_frames(self, headers: Headers) -> int:
        return self._seen.pop(0)


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[PlayedBench]:
    bench = PlayedBench(Dialogue.load(dialogue_of(request.node.name)))
    yield bench
    bench.tester.close()


def test_every_dialogue_belongs_to_a_test(request: pytest.FixtureRequest) -> None:
    mine = {dialogue_of(item.name) for item in request.session.items if item.path == request.path}
    assert set(FOLDER.glob("*.json")) - mine == set() or len(mine) == 1, "these dialogues belong to no test"
