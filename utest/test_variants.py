"""Variants on a testbed in simulated time: rounds, hooks, placement, records; the result as a document and a page."""

from __future__ import annotations

import io
import json
import os
import re
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

import chromium
import run_command.compare as compare_command
from podperf.__main__ import main
from podperf.errors import ExitCode, PodperfError, Unavailable
from podperf.experiments import comparison as results
from podperf.experiments.before_after import VariantVerdict
from podperf.experiments.comparison import ComparisonOutcome, VariantComparison, VariantResult, exact_outcome
from podperf.experiments.comparison_files import COMPARISON_SCHEMA
from podperf.experiments.contender import Contender, WantedPlacement
from podperf.history.runs import read_history
from podperf.kernel.cpus import Cpus
from podperf.kernel.threads import threads_named
from podperf.metrics import METRICS, Measured
from podperf.model import Chain, FrameSize, Placement
from podperf.ownership import Owner
from podperf.records import Record
from podperf.records.schema import schema_errors
from podperf.report.comparison_page import comparison_page, comparison_table, exit_code, write_comparison
from podperf.report.results import verdict_word
from podperf.run import Run
from podperf.run import TestIdentity as Identity
from podperf.run.contenders import run_after, run_before
from podperf.run.experiment import VariantRounds, told
from podperf.testbed.machines import WorkerMachine
from podperf.topology import Hook, Moment, WorkerSettings
from scripted_host import ScriptedHost
from test_hostile_answers import hostile
from test_report_page import BEYOND_THE_EDGE, CONTRASTS, SMALLEST_TEXT
from test_run import counted, run, simulated  # fixtures, too

SCHEMA = json.loads(Path(results.__file__).with_name("comparison.schema.json").read_text())
BRIDGE, DOCKER = Chain("linux-bridge", 1), Chain("docker", 1)
COMPARISON = VariantComparison(
    Path("comparisons/made-up.yaml"),
    "made-up",
    "A bridge, and Docker.",
    (Contender("bridge", BRIDGE), Contender("docker", DOCKER)),
    FrameSize.parse(64),
)
IDENTITY = Identity("Docker beside a bridge", "suite", ("comparison",))
__all__ = ["counted", "run"]


def sound(result: ComparisonOutcome) -> dict[str, Any]:
    """The document of a result, which has to fit its schema."""
    document = json.loads(json.dumps(result.to_json()))
    jsonschema.validate(document, SCHEMA)
    return dict(document)


def record_of(run: Run) -> dict[str, Any]:
    (path,) = (run.session.results / "records").glob("*.json")
    record = json.loads(path.read_text())
    assert schema_errors(record) == []
    return dict(record)


def test_a_slower_variant_is_found_and_recorded(run: Run) -> None:
    simulated(run).shares["docker"] = 0.6
    result = run.compare_variants(IDENTITY, COMPARISON)
    run.end_test(IDENTITY, "failed", result.sentence)
    assert result.verdict is VariantVerdict.SLOWER and result.ended == "decided" and exit_code(result) == ExitCode.WORSE
    assert result.sentence.startswith("docker beside bridge: slower: -33.3 %, 8 rounds")
    document, record = sound(result), record_of(run)
    assert len(document["orders"]) == 8, "it ends when it is decided"
    assert record["methods"]["variants"] == {**document, "finished": record["methods"]["variants"]["finished"]}
    assert {trial["phase"] for trial in record["trials"]} == {"bridge", "docker"}
    assert len(record["trials"]) == 2 * 2 * 8, "a warm-up and a trial of each variant in each round"
    assert set(record["data_plane"]) == {"bridge", "docker"}
    assert record["results"] == {}, "the figures of variants are no figures of a row"
    assert document["variants"][1]["record"] == record["id"]
    assert simulated(run).standing == 0


def test_each_chain_of_a_variant_gets_the_flows_of_the_comparison(run: Run) -> None:
    testbed = simulated(run)
    testbed.data_plane = replace(testbed.data_plane, further_entries=({},))
    two = tuple(Contender(each, Chain(each, 1, chains=2)) for each in ("macvlan", "linux-bridge"))
    run.compare_variants(IDENTITY, replace(COMPARISON, variants=two, flows=3, rounds=1))
    assert {(trial.traffic.groups, trial.traffic.flows) for trial in testbed.trials} == {(2, 6)}


def test_equal_variants_end_with_the_largest_possible_difference(run: Run) -> None:
    result = run.compare_variants(IDENTITY, COMPARISON)
    run.end_test(IDENTITY, "passed", result.sentence)
    assert result.verdict is VariantVerdict.NO_DIFFERENCE and exit_code(result) == 0
    assert sound(result)["variants"][1]["judgement"]["no_difference_larger_than"] < 0.001
    assert verdict_word(Record.of(record_of(run))) == "no difference"


def test_a_comparison_is_no_run_of_a_history(run: Run) -> None:
    run.compare_variants(IDENTITY, COMPARISON)
    run.end_test(IDENTITY, "passed")
    with pytest.raises(PodperfError, match="no run in it"):
        read_history(run.session.results)


def test_a_tester_with_a_fault_decides_nothing(run: Run) -> None:
    run.progress.stream = io.StringIO()
    simulated(run).own_loss = 0.001
    simulated(run).shares["docker"] = 0.6
    result = run.compare_variants(IDENTITY, COMPARISON)
    assert result.ended == "doubt" and exit_code(result) == ExitCode.UNDECIDED and len(result.orders) == 8
    assert "the tester itself loses frames" in sound(result)["sentence"]
    assert "then it ended, as the tester is not believed" in comparison_table(result, width=200)


def test_every_metric_of_a_search_can_be_compared(run: Run) -> None:
    simulated(run).shares |= {"linux-bridge": 1.0, "docker": 1.0}  # a rate that a latency can be measured below
    for name in ("pdr", "latency_p50"):
        wanted = replace(COMPARISON, metric=METRICS[name], rounds=6)
        result = run.compare_variants(IDENTITY, wanted)
        run.end_test(IDENTITY, "passed")
        assert len(result.variants[0].measured) == 6
        assert all(each.value > 0 for each in result.variants[1].measured)


def test_an_interrupted_comparison_has_the_rounds_so_far(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    test = run.begin_rounds(IDENTITY, COMPARISON)

    def interrupt(self: VariantRounds, found: Any) -> None:
        self.found = found
        if len(found.rounds) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(VariantRounds, "_on_round", interrupt)
    with pytest.raises(KeyboardInterrupt):
        test.measure()
    run.end_test(IDENTITY, "interrupted")
    result = test.outcome(interrupted=True)
    assert result.ended == "interrupted" and exit_code(result) == ExitCode.INTERRUPTED
    assert len(sound(result)["orders"]) == 3
    assert record_of(run)["methods"]["variants"]["ended"] == "interrupted"
    assert "interrupted" in comparison_table(result)


def test_before_the_first_round_has_ended_there_is_nothing_to_report(run: Run) -> None:
    with pytest.raises(PodperfError, match="not one round was measured"):
        run.begin_rounds(IDENTITY, COMPARISON).outcome()


def test_rounds_are_told_while_they_go_on(run: Run) -> None:
    simulated(run).shares["docker"] = 0.6
    stream = run.progress.stream = io.StringIO()
    run.progress.run_begins([0.0])
    run.progress.test_begins("made-up")
    test = run.begin_rounds(IDENTITY, COMPARISON)
    result = test.measure()
    assert test.found is not None
    assert told(test.found) == f"round 8 of at most 40: docker {result.variants[1].judgement.change.words}"  # type: ignore[union-attr]
    assert "[1/1] made-up | set-up" in stream.getvalue()


# --- placement and hooks ----------------------------------------------------------------------------------------------


def test_a_variant_has_the_cpus_that_it_names(run: Run) -> None:
    run.session.equipment = replace(run.session.equipment, cpus=[Cpus((0, 1, 2), (0, 1, 2))])
    monitored: list[Any] = []
    object.__setattr__(run.session.equipment, "watch", lambda *given: monitored.append(given))
    other = Contender("other CPU", BRIDGE, WantedPlacement(cpus=(2,)))
    run.compare_variants(IDENTITY, replace(COMPARISON, variants=(COMPARISON.variants[0], other)))
    chain, placed = run.current.record.contenders["other CPU"]
    assert placed.placement.sut == (2,) and placed.cpus[0].pods == (2,)
    assert chain.forwarder == "kernel"
    assert [each[0] for each in monitored] == [[{1, 2}]], "the CPUs of both are watched"


def test_a_variant_cannot_have_the_testers_cpu(run: Run) -> None:
    wrong = Contender("wrong", BRIDGE, WantedPlacement(cpus=(0,)))
    with pytest.raises(Unavailable, match="variant 'wrong' cannot have CPU 0; allowed for the system under test: 1"):
        run.compare_variants(IDENTITY, replace(COMPARISON, variants=(COMPARISON.variants[0], wrong)))


def test_hooks_before_the_set_up_are_taken_back_in_reverse_order() -> None:
    host = ScriptedHost(answers={"env ": "", "timeout ": ""}, patient=True)
    hooks = tuple(Hook(f"do {each}", f"undo {each}", Moment.BEFORE) for each in (1, 2))
    machine = WorkerMachine(WorkerSettings("local", None), host, Placement((0,), (1,)))
    with ExitStack() as undo:
        run_before(Contender("hooked", BRIDGE, hooks=(*hooks, Hook("later"))), [machine], undo)
        assert [each for each in host.commands if each.startswith("env")] == [
            "env PODPERF_PORTS= sh -e -c do 1",
            "env PODPERF_PORTS= sh -e -c do 2",
        ]
        noted = [json.loads(text)["command"][-1] for _, text in sorted(host.files.items())]
        assert noted == ["undo 1", "undo 2"], "the journal has them before the change, in case of a kill"
    assert [each[-6:] for each in host.commands if "undo" in each] == ["undo 2", "undo 1"]
    assert not host.files


def test_hooks_after_the_set_up_of_a_black_box_run_on_the_machine() -> None:
    """Without its hook, the variant would be equal to the first one."""
    host = ScriptedHost(answers={"env ": "", "timeout ": ""}, patient=True)
    machine = WorkerMachine(WorkerSettings("local", None), host, Placement((0,), (1,)))
    box = SimpleNamespace(parts=[SimpleNamespace(site=None)])
    with ExitStack() as undo:
        run_after(
            Contender("hooked", Chain("external", 0), hooks=(Hook("kubectl apply", "back"),)), box, [machine], undo
        )
        assert "env PODPERF_PORTS= sh -e -c kubectl apply" in host.commands
        assert len(host.files) == 1, "the undo is in the journal"
    assert not host.files and [each[-4:] for each in host.commands if each.startswith("timeout")] == ["back"]


def test_who_is_not_root_has_the_undo_of_a_hook_but_no_journal() -> None:
    host = ScriptedHost(answers={"env ": ""}, refused={"test -w /run": ""})
    machine = WorkerMachine(WorkerSettings("local", None), host, Placement((0,), (1,)))
    with ExitStack() as undo:
        run_before(Contender("hooked", BRIDGE, hooks=(Hook("do", "back", Moment.BEFORE),)), [machine], undo)
        assert host.commands[-1].endswith("-c do") and not host.files
    assert host.commands[-1].endswith("-c back")


def test_a_hook_that_fails_says_which_it_was(run: Run) -> None:
    failing = Contender("hooked", BRIDGE, hooks=(Hook("echo no such rule >&2; exit 3", None, Moment.BEFORE),))
    with pytest.raises(PodperfError) as error:
        run.compare_variants(IDENTITY, replace(COMPARISON, variants=(failing, COMPARISON.variants[1])))
    said = str(error.value)
    assert said == "hook 1 of variant 'hooked' (before set-up, in worker) ended with exit code 3: no such rule"
    assert simulated(run).standing == 0


# --- on a counted machine ---------------------------------------------------------------------------------------------


def test_a_counted_machine_compares_costs_exactly(counted: Run) -> None:
    result = counted.compare_variants(IDENTITY, COMPARISON)
    counted.end_test(IDENTITY, "passed", result.sentence)
    document = sound(result)
    assert result.verdict is VariantVerdict.NO_DIFFERENCE and result.exact
    assert [variant["figures"] for variant in document["variants"]] == [[9000.0], [9000.0]]
    assert document["metric"] == "cost" and document["confidence"] is None and document["relevant"] == 0.001
    record = record_of(counted)
    assert set(record["methods"]) == {"cost of bridge", "cost of docker", "variants"}


def test_a_variant_in_a_boot_of_its_own_has_a_record_of_its_own(counted: Run) -> None:
    test = counted.begin_costs(IDENTITY, COMPARISON, "docker")
    found = test.figure_of(COMPARISON.variants[1], alone=True)
    counted.end_test(IDENTITY, "passed")
    assert found.measured == [Measured(9000.0)]
    record = record_of(counted)
    assert record["chain"]["data_plane"] == "docker" and record["results"]["cost"]["instructions_per_frame"] == 9000
    assert record["id"] == "made-up-docker-64B" == found.record


@pytest.mark.parametrize(("metric", "reason"), [("mrr", "measures cost only"), ("pdr", "measures cost only")])
def test_a_counted_machine_compares_no_rates(counted: Run, metric: str, reason: str) -> None:
    with pytest.raises(Unavailable, match=reason):
        counted.compare_variants(IDENTITY, replace(COMPARISON, metric=METRICS[metric]))


def test_empty_arguments_are_as_if_they_were_not_given() -> None:
    parser = ArgumentParser()
    compare_command.add_arguments(parser)
    assert parser.parse_args(["gro.yaml", "", "--output", ""]) == parser.parse_args(["gro.yaml"])


def test_costs_are_compared_on_a_counted_machine_only(run: Run) -> None:
    with pytest.raises(Unavailable, match="cost is compared on a counted machine only"):
        run.compare_variants(IDENTITY, replace(COMPARISON, metric=METRICS["cost"]))


def test_machines_of_their_own_are_no_row_of_a_suite(counted: Run) -> None:
    alone = replace(COMPARISON.variants[1], topology=Path("counted.yaml"))
    with pytest.raises(Unavailable, match=r"\./podperf compare comparisons/made-up\.yaml measures them"):
        counted.compare_variants(IDENTITY, replace(COMPARISON, variants=(COMPARISON.variants[0], alone)))


# --- the command ------------------------------------------------------------------------------------------------------


def command(*arguments: str) -> int:
    """The exit code of the command."""
    return main(["--no-install", "compare", *arguments])


def test_a_comparison_that_is_not_there_has_a_near_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("comparisons/grro.yaml") == ExitCode.REFUSED
    said = capsys.readouterr().err
    assert said.startswith("podperf: there is no comparison comparisons/grro.yaml; near: ") and "gro.yaml" in said


def test_a_mistake_in_the_file_is_told_and_nothing_is_begun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "wrong.yaml").write_text("version: 1\nname: wrong\nvariants: 2\n")
    assert command(str(tmp_path / "wrong.yaml"), "--output", str(tmp_path / "results")) == ExitCode.NOT_DONE
    assert capsys.readouterr().err == (
        f"podperf: {tmp_path}/wrong.yaml:3: variants: found 2; allowed: a list of 2 to 8\n"
    )
    assert not (tmp_path / "results").exists()


def test_a_worker_that_says_a_word_where_a_number_belongs_costs_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def compare(*_: object) -> list[int]:
        return threads_named(hostile("much\x1b[2J"), "napi/")

    monkeypatch.setattr(compare_command, "compare", compare)
    given = [str(COMPARISON_SCHEMA.parent / "gro.yaml"), "--output", str(tmp_path / "results")]
    assert command(*given) == ExitCode.NOT_DONE
    said = capsys.readouterr().err
    line = r"podperf: ValueError: invalid literal for int\(\) .*much.* \(threads\.py, line \d+\)\n"
    assert re.fullmatch(line, said) and "\x1b" not in said


@pytest.mark.parametrize("verdict", [0, ExitCode.WORSE])
def test_the_command_prints_the_table_writes_the_report_and_ends_with_the_verdict(
    verdict: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = costs(9000, 9900 if verdict else 9000)
    asked: list[Any] = []

    def compare(comparison: VariantComparison, topology: Path, *_: object) -> ComparisonOutcome:
        asked.append((comparison.name, topology.name))
        return found

    monkeypatch.setattr(compare_command, "compare", compare)
    folder = tmp_path / "results"
    assert command(str(COMPARISON_SCHEMA.parent / "gro.yaml"), "--output", str(folder)) == verdict
    assert asked == [("gro", "local.yaml")]
    told = capsys.readouterr().out
    assert told.startswith("Variant") and told.rstrip().endswith(f"{folder}/comparison-made-up.html")


@pytest.mark.parametrize("is_new", [True, False])
def test_the_caller_of_sudo_gets_a_new_folder_and_none_that_was_there(
    is_new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--output /srv` would give everything in /srv away."""
    given: list[Path] = []
    monkeypatch.setattr(Owner, "caller", lambda _: Owner(os.getuid(), os.getgid()))
    monkeypatch.setattr("run_command.preparation.hand_over", lambda results, _: given.append(results))
    monkeypatch.setattr(compare_command, "compare", lambda *_: costs(9000, 9000))
    folder = tmp_path / "results"
    if not is_new:
        folder.mkdir()
    assert command(str(COMPARISON_SCHEMA.parent / "gro.yaml"), "--output", str(folder)) == 0
    assert given == ([folder] if is_new else [])


# --- the report -------------------------------------------------------------------------------------------------------


def costs(*figures: float) -> ComparisonOutcome:
    variants = tuple(Contender(f"variant {number}", BRIDGE) for number in range(len(figures)))
    found = [
        VariantResult(each, (Measured(figure),), None, "id", "counted")
        for each, figure in zip(variants, figures, strict=True)
    ]
    return exact_outcome(replace(COMPARISON, variants=variants), found, 1.79e9)


@pytest.mark.parametrize(
    ("figures", "code"),
    [((9000, 9000), 0), ((9000, 8000), 0), ((9000, 9100), ExitCode.WORSE), ((9000, 8000, 9100), ExitCode.WORSE)],
)
def test_the_exit_code_tells_a_slower_variant(figures: tuple[float, ...], code: int) -> None:
    assert exit_code(costs(*figures)) == code


def test_undecided_has_an_exit_code_of_its_own(run: Run) -> None:
    """The tester is the limit on both paths, so that all rounds decide nothing."""
    simulated(run).shares |= {"linux-bridge": 1.0, "docker": 1.0}
    result = run.compare_variants(IDENTITY, replace(COMPARISON, rounds=12))
    assert result.ended == "all rounds" and exit_code(result) == ExitCode.UNDECIDED
    assert "docker: the tester was the limit, so the true figures are not known." in comparison_table(result, width=200)
    assert sound(result)["variants"][1]["judgement"]["low"] is None
    assert sound(result)["variants"][1]["lower_bounds"] == 12


def test_the_table_reads_well(run: Run) -> None:
    simulated(run).shares["docker"] = 0.6
    table = comparison_table(run.compare_variants(IDENTITY, COMPARISON), width=80)
    lines = table.splitlines()
    assert re.fullmatch(r"Variant +MRR, kpps +Change +Verdict", lines[0])
    assert re.fullmatch(r"bridge +900  -", lines[2])
    assert re.fullmatch(r"docker +600  -33.3 % +slower", lines[3])
    assert "More than 5 % counts. 8 rounds of 64B frames; then everything was decided." in " ".join(lines[5:])
    assert all(len(line) <= 80 for line in lines[5:])
    assert "\x1b[31;1mslower" in comparison_table(costs(9000, 9900), colour=True)


@pytest.fixture
def report(run: Run, tmp_path: Path) -> Path:
    """The page of three variants, one with a hook whose text looks like markup."""
    testbed = simulated(run)
    testbed.shares["docker"] = 0.6
    hooked = Contender("with a hook", Chain("macvlan", 1), hooks=(Hook("echo '<b>bold</b>'", "true", Moment.BEFORE),))
    wanted = replace(COMPARISON, variants=(*COMPARISON.variants, hooked), description="<script>alert(1)</script>")
    result = run.compare_variants(IDENTITY, wanted)
    assert [each.verdict for each in (one.judgement for one in result.variants) if each] == [
        VariantVerdict.SLOWER,
        VariantVerdict.NO_DIFFERENCE,
    ]
    return write_comparison(result, tmp_path / "results")


def test_the_page_has_the_rounds_and_escapes_what_users_write(report: Path) -> None:
    text = report.read_text()
    assert report.name == "comparison-made-up.html"
    assert json.loads(report.with_suffix(".json").read_text())["verdict"] == "slower"
    assert text.count("<svg") == 2 and "docker, round 12: -33.3 %" in text
    assert "<b>bold" not in text and "<script>" not in text and "&lt;b&gt;bold" in text


def test_a_ci_server_finds_each_variant_as_a_test_case(report: Path) -> None:
    suite = ElementTree.parse(report.with_suffix(".xml")).getroot()
    assert [case.get("name") for case in suite] == ["docker beside bridge: MRR", "with a hook beside bridge: MRR"]
    assert [case[0].tag for case in suite] == ["failure", "system-out"]
    assert suite[0][0].get("message") == "slower: -33.3 %"


def test_a_page_without_a_figure_says_so() -> None:
    nothing = exact_outcome(COMPARISON, [], 1.79e9, interrupted=True)
    assert "Nothing was measured" in comparison_page(nothing)
    assert exit_code(nothing) == ExitCode.INTERRUPTED and sound(nothing)["variants"] == []


@pytest.fixture
def screen(report: Path) -> Iterator[chromium.Page]:
    with chromium.browser() as opened:
        opened.open(report)
        yield opened


def test_the_page_fits_on_every_screen_and_stands_out(screen: chromium.Page) -> None:
    for width in chromium.WIDTHS:
        screen.show(width)
        assert screen.run("document.scrollingElement.scrollWidth") == width
        assert screen.run(BEYOND_THE_EDGE) == []
        assert screen.run(SMALLEST_TEXT) >= 9
    for dark in (False, True):
        screen.show(1280, dark=dark)
        assert min(screen.run(CONTRASTS)) >= 4.5  # what WCAG asks for (AA)
