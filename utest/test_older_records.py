"""Records of older versions of the schema are read as those of the present one.

records_of_version_1.json has records that the last podperf with version 1 wrote, and one of findings without sources.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from every_kind import every_kind
from podperf.history.fingerprint import fingerprint
from podperf.metrics import METRICS
from podperf.records import SCHEMA_VERSION, Record, read_record
from podperf.records.older import converted

MEASURED, EVERY_METHOD, COMPARED, FINDINGS = json.loads(
    Path(__file__).with_name("records_of_version_1.json").read_text()
)


def read(document: Any, folder: Path) -> Any:
    (folder / "r.json").write_text(json.dumps(document))
    read_record(folder / "r.json")
    return converted(document)


def test_a_latency_has_one_form(tmp_path: Path) -> None:
    found = read(EVERY_METHOD, tmp_path)
    old, new = (each["methods"]["latency"]["latency"] for each in (EVERY_METHOD, found))
    assert new == {f"{name.replace('.', '_')}_ns": value for name, value in old.items()}
    of_trial = found["trials"][0]["directions"][0]["latency"]
    assert new.keys() <= of_trial.keys() and of_trial["minimum_ns"] <= of_trial["p50_ns"] <= of_trial["maximum_ns"]
    assert found["latency"] == EVERY_METHOD["latency"]


def test_a_placement_has_one_form(tmp_path: Path) -> None:
    found = read(MEASURED, tmp_path)
    assert found["placement"] == {"tester": [0], "sut": [1], "shared": [], "apart": False, "hugepages_of_mib": 2}
    for placement in read(COMPARED, tmp_path)["methods"]["comparison"]["placements"].values():
        assert placement["placement"] == found["placement"] | {"named_switch": []}


def test_hugepages_have_one_unit(tmp_path: Path) -> None:
    assert [hugepage["of_mib"] for hugepage in read(MEASURED, tmp_path)["environment"]["hugepages"]] == [2]
    memory = read(COMPARED, tmp_path)["methods"]["comparison"]["memory"]["OVS-DPDK S1"]["pod1"]
    assert memory == {"hugepages_mib": {"2": 128}, "ordinary_kib": 7, "transparent_kib": 0}


def test_the_noise_of_workers_is_a_list(tmp_path: Path) -> None:
    (worker,) = read(MEASURED, tmp_path)["quietness"]["workers"]
    assert worker == {key: value for key, value in MEASURED["quietness"].items() if key != "worker"}


def test_a_claim_without_a_source_stays_without_one(tmp_path: Path) -> None:
    assert {finding["source"] for finding in read(FINDINGS, tmp_path)["findings"]} == {""}


@pytest.mark.parametrize("without", ["", "roles"])
def test_a_history_goes_on_with_records_of_the_present_version(without: str, tmp_path: Path) -> None:
    now = every_kind()["a measured chain"]
    old = {key: value for key, value in MEASURED.items() if key != without}
    assert now["schema_version"] == SCHEMA_VERSION != old["schema_version"]
    for metric in METRICS.values():
        assert fingerprint(Record.of(read(old, tmp_path)), metric) == fingerprint(
            Record.of(read(now, tmp_path)), metric
        )
