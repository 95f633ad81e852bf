"""A recorded TRex server. It answers TRex's own client again, at the recorded speed.

`recorded_trex.py FILE` records until it is terminated. It stands between a client (ports 5501 and 5500) and a server
(4501 and 4500).

A call of the client is a deed (`add_stream`, `start_traffic` …) or a question (`get_port_stats` …). In a replay, deeds
must come in the recorded order. Each deed starts a new clock. The answer to a question is the server's recorded answer
at the same time after the last deed. Between two recorded answers, counters grow evenly.

A busy machine can make a trial late. The client then repeats the trial, and the replay goes back to the first deed of a
trial. Each trial has new numbers for its streams and latency groups. Calls that only differ in these numbers are the
same.
"""

from __future__ import annotations

import gzip
import json
import signal
import struct
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import zmq

FOLDER = Path(__file__).with_name("trex_recordings")
RPC_PORT, PUBLISHER_PORT = 5501, 5500  # of the recorder
_SERVER_RPC, _SERVER_PUBLISHER = 4501, 4500
_ZIPPED = 0xABE85CEA  # TRex's mark of a compressed message; the length of the content follows
# Of one session only: they differ each time.
_PASSING = {"api_h", "handler", "session_id", "user", "key"}
FIRST_OF_TRIAL = "add_stream"
_QUESTIONS = ("get_", "publish_now", "ping")

Json = dict[str, Any]


def content_of(message: bytes) -> list[Json]:
    """The calls or answers in a message, compressed or not. TRex sends a single one, also of a list, without a list."""
    if len(message) > 8 and struct.unpack(">I", message[:4])[0] == _ZIPPED:
        message = zlib.decompress(message[8:])
    content = json.loads(message)
    return content if isinstance(content, list) else [content]


def essence(call: Json) -> Json:
    """A call without the parts that differ each time."""
    parameters = {key: value for key, value in call["params"].items() if key not in _PASSING}
    return {"method": call["method"], "params": parameters}


def without_numbers(calls: list[Json]) -> list[Json]:
    """The same calls for each trial of a kind: without the numbers of streams and latency groups."""
    copies: list[Json] = json.loads(json.dumps(calls))
    for parameters in (copy["params"] for copy in copies):
        parameters.pop("stream_id", None)
        parameters.get("stream", {}).get("flow_stats", {}).pop("stream_id", None)
        if "pgids" in parameters:
            parameters["pgids"] = len(parameters["pgids"])
    return copies


def about_groups(answer: Json, recorded: Json, asked: Json) -> Json:
    """The answer to a recorded question, with the latency groups of the one that is asked now."""
    numbers = {str(was): str(now) for was, now in zip(recorded.get("pgids", ()), asked.get("pgids", ()), strict=True)}
    if not numbers:
        return answer
    result = {
        name: {numbers.get(key, key): each for key, each in part.items()} for name, part in answer["result"].items()
    }
    return {**answer, "result": result}


def is_question(calls: list[Json]) -> bool:
    """True if none of these calls changes anything."""
    return all(call["method"].startswith(_QUESTIONS) for call in calls)


class Recorder:
    """Passes messages on, and stores them: for each deed its questions, and how long each answer was valid."""

    def __init__(self) -> None:
        self.chapters: list[Json] = [{"deed": None, "answer": None, "questions": []}]
        self._began = time.monotonic()

    def exchanged(self, calls: list[Json], answers: list[Json]) -> None:
        """One message and its answer, both as lists."""
        asked = [essence(call) for call in calls]
        said = [{key: value for key, value in answer.items() if key != "id"} for answer in answers]
        if not is_question(calls):
            self.chapters.append({"deed": asked, "answer": said, "questions": []})
            self._began = time.monotonic()
            return
        now = round(time.monotonic() - self._began, 4)
        known = [question for question in self.chapters[-1]["questions"] if question["asked"] == asked]
        if known and known[-1]["answer"] == said:
            known[-1]["until"] = now
        else:
            self.chapters[-1]["questions"].append({"asked": asked, "answer": said, "from": now, "until": now})

    def save(self, path: Path) -> None:
        """Write the recording to its file."""
        path.parent.mkdir(exist_ok=True)
        with gzip.GzipFile(path, "wb", mtime=0) as file:
            file.write(json.dumps(self.chapters).encode())


def record(path: Path) -> None:
    """Stand between client and server until SIGTERM."""
    context, recorder = zmq.Context(), Recorder()
    asking, answering = context.socket(zmq.REQ), context.socket(zmq.REP)
    hearing, telling = context.socket(zmq.SUB), context.socket(zmq.PUB)
    hearing.setsockopt(zmq.SUBSCRIBE, b"")
    asking.connect(f"tcp://127.0.0.1:{_SERVER_RPC}")
    hearing.connect(f"tcp://127.0.0.1:{_SERVER_PUBLISHER}")
    answering.bind(f"tcp://127.0.0.1:{RPC_PORT}")
    telling.bind(f"tcp://127.0.0.1:{PUBLISHER_PORT}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    poller = zmq.Poller()
    poller.register(answering, zmq.POLLIN)
    poller.register(hearing, zmq.POLLIN)
    print("ready", flush=True)
    try:
        while True:
            ready = dict(poller.poll())
            if hearing in ready:
                telling.send(hearing.recv())
            if answering in ready:
                request = answering.recv()
                asking.send(request)
                answer = asking.recv()
                answering.send(answer)
                recorder.exchanged(content_of(request), content_of(answer))
    finally:
        recorder.save(path)


class RecordedTrex:
    """Plays a recording on its own ports until `close()`."""

    def __init__(self, path: Path) -> None:
        with gzip.open(path) as file:
            self._chapters: list[Json] = json.load(file)
        self._path, self._at, self._began = path, 0, time.monotonic()
        self._context = zmq.Context()
        self._answering, self._telling = self._context.socket(zmq.REP), self._context.socket(zmq.PUB)
        self.port = self._answering.bind_to_random_port("tcp://127.0.0.1")
        self.publisher_port = self._telling.bind_to_random_port("tcp://127.0.0.1")
        self.complaint: str | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._play)
        self._thread.start()

    def close(self) -> None:
        """End."""
        self._ended.set()
        self._thread.join()
        self._context.destroy(linger=0)

    def _play(self) -> None:
        while not self._ended.is_set():
            if not self._answering.poll(20):
                self._publish("sign-of-life", 0)  # a client waits for the first one, and gives up after 3 s without any
                continue
            calls = content_of(self._answering.recv())
            said = [answer | {"id": call["id"]} for call, answer in zip(calls, self._answers(calls), strict=True)]
            self._answering.send(json.dumps(said if len(said) > 1 else said[0]).encode())
            for call in calls:
                if call["method"] == "publish_now":  # tells a client that it has received everything so far
                    self._publish("trex-barrier", call["params"]["key"])

    def _publish(self, name: str, kind: int) -> None:
        self._telling.send(json.dumps({"name": name, "type": kind, "data": {}}).encode())

    def _answers(self, calls: list[Json]) -> list[Json]:
        asked = [essence(each) for each in calls]
        if not is_question(calls):
            at = self._place_of(asked)
            if at is None:
                following = self._chapters[self._at + 1 : self._at + 2]
                expected = following[0]["deed"] if following else "the end"
                return self._refusals(calls, f"{asked} was not recorded here, but {expected}")
            self._at, self._began = at, time.monotonic()
            return list(self._chapters[at]["answer"])
        now = time.monotonic() - self._began
        # A question at another time than in the recording may belong to the previous or the next chapter.
        near = (
            self._chapters[self._at : self._at + 2] + self._chapters[: self._at][::-1] + self._chapters[self._at + 2 :]
        )
        for chapter in near:
            known = [
                question
                for question in chapter["questions"]
                if without_numbers(question["asked"]) == without_numbers(asked)
            ]
            if known:
                recorded = known[0]["asked"]
                return [
                    about_groups(answer, was["params"], call["params"])
                    for answer, was, call in zip(_at(known, now), recorded, asked, strict=True)
                ]
        return self._refusals(calls, f"{asked} was not asked when this was recorded")

    def _place_of(self, deed: list[Json]) -> int | None:
        """The chapter that begins with this deed: the next one. If a trial begins again: the last chapter with such a
        deed."""
        following = self._at + 1
        before = range(self._at, 0, -1) if deed[0]["method"] == FIRST_OF_TRIAL else ()
        for at in (following, *before):
            if at < len(self._chapters) and without_numbers(self._chapters[at]["deed"]) == without_numbers(deed):
                return at
        return None

    def _refusals(self, calls: list[Json], why: str) -> list[Json]:
        self.complaint = self.complaint or f"{self._path.name} has to be recorded anew: {why}"
        return [{"jsonrpc": "2.0", "error": {"code": -1, "message": self.complaint}} for _ in calls]


def _at(answers: list[Json], now: float) -> Any:
    """The server's answer at this time, from its successive answers to one question."""
    before = [answer for answer in answers if answer["from"] <= now] or answers[:1]
    after = [answer for answer in answers if answer["from"] > now]
    if not after or now <= before[-1]["until"]:
        return before[-1]["answer"]
    return _between(before[-1]["answer"], after[0]["answer"], before[-1]["until"], after[0]["from"], now)


def _between(one: Any, other: Any, begin: float, end: float, now: float) -> Any:
    """A value between two answers. Counters grow evenly; all other values stay."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return {key: _between(one[key], other[key], begin, end, now) for key in one}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [_between(*pair, begin, end, now) for pair in zip(one, other, strict=True)]
    if type(one) is type(other) is int:
        return one + round((other - one) * max(0.0, now - begin) / (end - begin))
    return one


if __name__ == "__main__":
    record(Path(sys.argv[1]))
