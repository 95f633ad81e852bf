"""Records: the files that a test leaves on disk, however it ends."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from robot.result import TestCase as TestResult

import made_up
from killed import run_and_kill
from packets import HEADERS
from podperf import records
from podperf.cpu_plan import plan_cpus
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError
from podperf.metrics import Measured
from podperf.model import (
    BOTH_DIRECTIONS,
    AddressedTraffic,
    Chain,
    Direction,
    DirectionResult,
    Entry,
    FrameSize,
    Latency,
    NetworkingModel,
    Placement,
    TrafficProfile,
    Trial,
    TrialResult,
)
from podperf.noise import Noise
from podperf.records import RecordWriter, TestRecord, set_aside, writer
from podperf.records.json_values import plain, traffic_to_json, trial_to_json
from podperf.records.schema import SCHEMA_PATH
from podperf.testers import base
from podperf.testers.base import UNPACED
from Testbed import _outcome as outcome_of

counts = st.integers(0, 2**40)
positive = st.floats(1e-6, 1e12)
latencies = st.builds(
    Latency,
    minimum=counts,
    mean=positive,
    maximum=counts,
    counts=st.dictionaries(st.integers(0, 3583), st.integers(1, 2**40), max_size=8),
)

noises_of_one_machine = st.builds(
    Noise,
    cpus=st.lists(st.integers(0, 255), min_size=1).map(tuple),
    window=positive,
    stolen=positive,
    foreign=st.dictionaries(st.text(), positive, max_size=3),
    context_switches=counts,
    run_queue=counts,
    resolution=positive,
)
noises = st.builds(
    lambda noise, workers: replace(noise, workers=tuple(workers)),
    noises_of_one_machine,
    st.lists(noises_of_one_machine, max_size=2),
)


def direction_results(direction: Direction) -> st.SearchStrategy[DirectionResult]:
    return st.builds(
        DirectionResult,
        direction=st.just(direction),
        duration=positive,
        latency=st.none() | latencies,
        **dict.fromkeys(("intended", "sent", "received", "duplicated", "reordered", "corrupted", "late"), counts),
    )


traffics = st.builds(
    AddressedTraffic,
    st.builds(
        TrafficProfile,
        frame=st.sampled_from(["128", "1518", "bbbg"]).map(FrameSize.parse),
        directions=st.sampled_from([BOTH_DIRECTIONS, BOTH_DIRECTIONS[:1], BOTH_DIRECTIONS[1:]]),
        flows=st.integers(1, 10_000),
        headers=HEADERS,
    ),
    entries=st.dictionaries(
        st.sampled_from(Direction), st.builds(Entry, st.none() | st.text(), st.none() | st.text(), st.none() | counts)
    ),
)


@st.composite
def trial_results(draw: st.DrawFn) -> TrialResult:
    traffic = draw(traffics)
    return TrialResult(
        trial=Trial(traffic, draw(positive | st.just(UNPACED)), draw(positive)),
        started=draw(positive),
        directions=tuple(draw(direction_results(direction)) for direction in traffic.directions),
        stray=draw(counts),
        own_drops=draw(counts),
        invalid=draw(st.none() | st.text()),
        elapsed=draw(positive),
        noise=draw(st.none() | noises),
    )


SCHEMA = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
OF_A_TRIAL = jsonschema.Draft202012Validator({**SCHEMA["properties"]["trials"]["items"], "$defs": SCHEMA["$defs"]})


@given(trial_results())
def test_the_json_of_any_trial_fits_the_schema_and_has_every_count(result: TrialResult) -> None:
    data = json.loads(json.dumps(trial_to_json(result, "mrr"), allow_nan=False))
    assert [iter_error.message for iter_error in OF_A_TRIAL.iter_errors(data)] == []
    for direction, said in zip(result.directions, data["directions"], strict=True):
        latency = said.pop("latency")
        assert said == {name: getattr(direction, name) for name in said}
        assert (latency is None) == (direction.latency is None)
        if direction.latency is not None:
            assert {int(index): count for index, count in latency["counts"].items()} == direction.latency.counts


@given(traffics)
def test_the_json_of_traffic_names_each_frame_size_and_entry(traffic: AddressedTraffic) -> None:
    data = json.loads(json.dumps(traffic_to_json(traffic)))
    assert FrameSize(data["frame"]["name"], tuple(data["frame"]["sequence"])) == traffic.frame
    assert (tuple(data["directions"]), data["flows"]) == (traffic.directions, traffic.flows)
    assert {Direction(each): Entry(**entry) for each, entry in data["entries"].items()} == traffic.entries


TRAFFIC = AddressedTraffic(TrafficProfile(FrameSize.parse(64), BOTH_DIRECTIONS))
LATENCY = Latency(900, 1500.5, 70_000, {250: 5, 300: 90, 1347: 1})


def a_trial(load: float = 100_000.0) -> TrialResult:
    result = DirectionResult(Direction.LEFT_TO_RIGHT, 1000, 1000, 990, 0, 0, 0, 0.01, latency=LATENCY)
    other = replace(result, direction=Direction.RIGHT_TO_LEFT, latency=None)
    return TrialResult(Trial(TRAFFIC, load, 0.01), 1e9, (result, other))


def a_record() -> TestRecord:
    return TestRecord(
        id=records.record_id("4.1.1", "linux-bridge", "1 pod", "64B"),
        name="Linux bridge, 64 B",
        suite="4.1.1 kernel space",
        tags=["sec-4.1.1", "appendix-c", "64B"],
        model=NetworkingModel.KERNEL_SPACE,
        chain=Chain("linux-bridge", 1, "kernel"),
        traffic=TRAFFIC,
        placement=Placement((0,), (1,)),
        tester={"engine": "xdp"},
        limits=base.TesterLimits(4.5e6, 0.0, "calibration on the bare path"),
        link_bits_per_second=1e9,
        metrics={"mrr": Measured(281_000.0, 262_000.0, 290_000.0), "latency_p50": Measured(16_000.0)},
        latency=LATENCY,
        latency_of="trial at 137 kpps",
        noises={"mrr": Noise((0, 1), 1.0, 0.0, {"stress-ng (17)": 0.4}, 100, 3, 0.01)},
    )


def test_the_schema_has_each_key_once() -> None:
    """Python's reader takes the last one of two, and says nothing."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in pairs]
        assert len(names) == len(set(names)), [each for each in names if names.count(each) > 1]
        return dict(pairs)

    json.loads(SCHEMA_PATH.read_text(), object_pairs_hook=once)


def test_a_finished_record_fits_the_published_schema_and_holds_the_trials(tmp_path: Path) -> None:
    record = a_record()
    writer = RecordWriter(tmp_path / "records", record)
    for load in (1e5, 2e5, UNPACED):
        writer.trial(a_trial(load), "mrr")
    record.outcome = "passed"
    path = writer.finish(record)

    document = json.loads(path.read_text())
    assert records.schema_errors(document) == []
    assert [trial["load"] for trial in document["trials"]] == [1e5, 2e5, None]
    assert document["test"]["sections"] == ["4.1.1", "C"]
    assert [each.name for each in path.parent.iterdir()] == ["4.1.1-linux-bridge-1-pod-64B.json"]


def test_rates_come_in_every_unit() -> None:
    rate = a_record().to_json()["results"]["mrr"]
    assert rate["l2_bits_per_second"] == 281_000 * 64 * 8
    assert rate["l1_bits_per_second"] == 281_000 * 84 * 8
    assert rate["aggregate_frames_per_second"] == 562_000
    assert rate["percent_of_line_rate"] == pytest.approx(281_000 / 1_488_095.2 * 100)


def test_two_tests_of_one_name_keep_two_records(tmp_path: Path) -> None:
    first, second = a_record(), a_record()
    one, two = RecordWriter(tmp_path, first), RecordWriter(tmp_path, second)
    paths = {one.finish(first), two.finish(second), RecordWriter(tmp_path, third := a_record()).finish(third)}
    assert {path.stem for path in paths} == {first.id, f"{first.id}-2", f"{first.id}-3"}
    assert json.loads((tmp_path / f"{second.id}.json").read_text())["id"] == second.id


def test_records_of_an_earlier_run_get_a_folder_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Robot Framework may be given the same output folder again; a report is of one run."""
    assert set_aside(tmp_path) is None
    RecordWriter(tmp_path / "records", record := a_record()).finish(record)
    assert set_aside(tmp_path) is None, "the same run opens its testbed once more"
    for number in (1, 2):
        monkeypatch.setattr(writer, "_of_this_run", set())  # another one
        aside = set_aside(tmp_path)
        assert aside is not None
        assert (aside / f"{record.id}.json").exists()
        assert len(list(tmp_path.iterdir())) == number
        RecordWriter(tmp_path / "records", record := a_record()).finish(record)


def a_killed_run(folder: Path, *lines: str) -> None:
    """Run lines that write a record in this folder, which is their first argument, and kill their process."""
    imports = ("from test_records import a_record, a_trial", "from podperf.records import RecordWriter")
    run_and_kill(*imports, *lines, arguments=(str(folder),))


@pytest.mark.parametrize("moment", ["open", "write", "fsync"])
def test_a_run_that_is_killed_before_its_first_line_is_on_disk_leaves_no_record(moment: str, tmp_path: Path) -> None:
    killed_after = (
        f"real = os.{moment}",
        f"os.{moment} = lambda *given: (real(*given), os.kill(os.getpid(), 9))",
    )
    a_killed_run(tmp_path, *killed_after, "RecordWriter(sys.argv[1], a_record())")
    assert [*tmp_path.iterdir()] and not records.record_files(tmp_path)
    RecordWriter(tmp_path, record := a_record())
    assert record.id == a_record().id, "what is left takes no name from the next record"


def test_a_killed_test_leaves_every_trial_that_ended(tmp_path: Path) -> None:
    trials = "[writer.trial(a_trial(load), 'mrr') for load in (1e5, 2e5)]"
    a_killed_run(tmp_path, "writer = RecordWriter(sys.argv[1], a_record())", trials)
    (left,) = tmp_path.iterdir()
    head, *trials = [json.loads(line) for line in left.read_text().splitlines()]
    assert head["outcome"] == "interrupted"
    assert head["chain"]["data_plane"] == "linux-bridge"
    assert [trial["load"] for trial in trials] == [1e5, 2e5]


def test_a_document_that_does_not_fit_is_written_all_the_same(tmp_path: Path) -> None:
    record = a_record()
    record.data_plane = ["not an object"]  # type: ignore[assignment]
    writer = RecordWriter(tmp_path, record)
    with pytest.raises(PodperfError, match=r"does not fit its schema: \$\.data_plane: .* is not of type"):
        writer.finish(record)
    assert json.loads((tmp_path / f"{record.id}.json").read_text())["data_plane"] == ["not an object"]


def test_a_full_disk_loses_no_trial_and_the_test_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = a_record()
    writer = RecordWriter(tmp_path / "records", record)
    writer.trial(a_trial(1e5), "mrr")
    real_write = os.write

    def write_half_then_fail(file: int, data: bytes) -> int:
        real_write(file, data[: len(data) // 2])
        return full()

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write_half_then_fail)
        writer.trial(a_trial(2e5), "mrr")
    writer.trial(a_trial(3e5), "mrr")  # there is space again
    assert loads_on_disk(tmp_path / "records", record) == [None, 1e5, 2e5, 3e5]


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def loads_on_disk(folder: Path, record: TestRecord) -> list[float | None]:
    """The load of each line. The first line is the record, and has none."""
    lines = (folder / f"{record.id}.trials.jsonl").read_text().splitlines()
    return [json.loads(line).get("load") for line in lines]


def test_a_disk_that_is_full_when_a_test_begins_gets_no_empty_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = a_record()
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        writer = RecordWriter(tmp_path, record)
        writer.trial(a_trial(1e5), "mrr")
    assert not [*tmp_path.iterdir()]
    writer.trial(a_trial(2e5), "mrr")  # there is space again
    assert loads_on_disk(tmp_path, record) == [None, 1e5, 2e5]
    writer.finish(record)
    assert [each.name for each in tmp_path.iterdir()] == [f"{record.id}.json"]


def test_a_record_that_cannot_be_written_in_place_is_kept_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "records").write_text("a file where the folder should be")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    record = a_record()
    writer = RecordWriter(tmp_path / "records", record)
    writer.trial(a_trial(), "mrr")
    with pytest.raises(PodperfError, match=r"cannot write .*Not a directory; it is in .*elsewhere.* instead") as caught:
        writer.finish(record)
    assert "\n" not in str(caught.value)
    (saved,) = (tmp_path / "elsewhere").rglob("*.json")
    assert len(json.loads(saved.read_text())["trials"]) == 1


def test_what_a_full_disk_kept_of_a_test_is_told_beside_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    real_open, record = os.open, a_record()
    writer = RecordWriter(tmp_path / "records", record)
    writer.trial(a_trial(), "mrr")

    def open_elsewhere(path: Path, *arguments: int) -> int:
        return full() if "records" in str(path) else real_open(path, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        writer.trial(a_trial(), "mrr")
        writer.trial(a_trial(), "mrr")
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", open_elsewhere)
        with pytest.raises(PodperfError, match="No space left"):
            writer.finish(record)
    (left,) = records.record_files(tmp_path / "records")
    (saved,) = (tmp_path / "elsewhere").rglob("*.json")
    assert records.read_record(left).reason == (
        f"the record could not be written, and 1 of its 3 trials are in {left.name}; it is in {saved.parent} instead: "
        "free some space, then move it there"
    )


@given(st.lists(st.text(), max_size=5))
def test_id_suits_any_file_system(words: list[str]) -> None:
    name = records.record_id(*words)
    assert name and len(name) <= 120
    assert not set(name) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    assert not name.startswith((".", "-"))


@given(st.recursive(st.none() | st.floats() | st.binary() | st.sets(st.text()) | st.just(Path("/x")), st.lists))
def test_whatever_a_component_describes_becomes_json(described: object) -> None:
    json.dumps(plain({"what": described}), allow_nan=False)


def test_every_outcome_that_a_record_may_have_comes_about() -> None:
    ends = [TestResult(status=status) for status in ("PASS", "FAIL", "SKIP")]
    found = {outcome_of(end) for end in ends} | {TestRecord("id", "name", "suite").outcome}
    assert set(SCHEMA["properties"]["outcome"]["enum"]) == found


@pytest.mark.parametrize("where", ["", "Setup failed:\n", "Parent suite setup failed:\n", "Teardown failed:\n"])
def test_a_signal_interrupts_a_test_wherever_it_comes(where: str) -> None:
    assert outcome_of(TestResult(status="FAIL", message=f"{where}Execution terminated by signal")) == "interrupted"


@pytest.mark.parametrize(("data_plane", "switch"), [("linux-bridge", []), ("ovs-dpdk", [1]), ("af-xdp", [])])
def test_a_record_has_the_roles_of_the_plan_and_no_others(data_plane: str, switch: list[int], tmp_path: Path) -> None:
    record, trials = made_up.forwarding_record(data_plane, 3e5, pods=2)
    record.placement = Placement((0,), (1, 2), neighbour=(3,))
    with_switch = DATA_PLANES[data_plane].switch_has_cpus
    record.cpu_plans = [plan_cpus(record.placement, 2, with_switch=with_switch)]
    document = made_up.document(record, trials, tmp_path)
    (roles,) = document["roles"]
    assert roles.get("switch", []) == switch
    assert ("control" in roles) == bool(switch)
    assert (roles["receives left"], roles["receives right"], roles["neighbour"], roles["tester"]) == (
        [1],
        [2],
        [3],
        [0],
    )
    assert [roles["pod 1"], roles["pod 2"]] == ([[2], [2]] if switch else [[1], [2]])


def test_a_record_without_a_chain_of_podperf_has_no_roles(tmp_path: Path) -> None:
    document = made_up.document(*made_up.forwarding_record("wire", 3e5, pods=0), tmp_path)
    assert document["roles"] == []
