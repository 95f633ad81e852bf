"""Other Python packages add parts to podperf. A broken package only makes its own parts unusable."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from page_package import MODULE, ROOT, block, install, write_package, write_topology
from podperf import third_party
from podperf.__main__ import call
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError
from podperf.pods import POD_RUNTIMES
from podperf.testers import TESTERS
from podperf.third_party import GROUPS, add_package, with_third_party
from podperf.topology import Topology, TopologyError, load_topology


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with four entry points. Two of them can be used."""
    (tmp_path / "acme.py").write_text("FAST, SLOW = 'fast', 'slow'\n")
    (tmp_path / "acme_broken.py").write_text("raise OSError('no licence')\n")
    installed = tmp_path / "acme-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[podperf.tests]\nslow = acme:SLOW\nfast = acme:FAST\nours = acme:FAST\nbroken = acme_broken:IT\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("package")
def test_parts_of_a_package_stand_behind_our_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(with_third_party("podperf.tests", {"ours": "ours"}).items()) == [
        ("ours", "ours"),
        ("fast", "fast"),
        ("slow", "slow"),
    ]
    assert capsys.readouterr().err.splitlines() == [
        "podperf: broken (podperf.tests) of the package acme is left out: OSError: no licence",
        "podperf: ours (podperf.tests) of the package acme is left out: there is another part of this name",
    ]


def test_without_such_a_package_there_is_nothing_to_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert with_third_party("podperf.tests", {"ours": 1}) == {"ours": 1}
    assert not capsys.readouterr().err


def test_a_package_may_import_the_modules_that_look_for_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a new process: every module of podperf is imported for the first time there."""
    install(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'libraries'}:{tmp_path}")
    for first, other in (("dataplanes", "testers"), ("testers", "dataplanes")):
        code = (
            f"import podperf.{first}, podperf.{other}\n"
            "from podperf.dataplanes import DATA_PLANES\nfrom podperf.testers import TESTERS\n"
            "print('acme-switch' in DATA_PLANES, 'acme-generator' in TESTERS)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == ("True True\n", "")


def test_each_group_has_a_registry() -> None:
    assert set(GROUPS) <= set(third_party._registries)


# --- packages that a topology names by their folders ------------------------------------------------------------------


@pytest.fixture
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Parts that a test adds are gone after the test."""
    before = [(parts, dict(parts)) for parts in third_party._registries.values()]
    monkeypatch.setattr(third_party, "_registries", dict(third_party._registries))
    monkeypatch.setattr(third_party, "_from_folders", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for parts, content in before:
        parts.clear()
        parts.update(content)
    for name in [name for name in sys.modules if name.startswith("acme")]:
        del sys.modules[name]


def project(folder: Path, text: str, **modules: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    for name, code in modules.items():
        (folder / f"{name}.py").write_text(code)
    return folder


CLAIM = '[project.entry-points."podperf.testers"]\nfast = "acme_claims:FAST"\n'


@pytest.mark.usefixtures("as_before")
def test_a_folder_adds_parts_to_registries_that_there_are_and_to_those_that_follow(tmp_path: Path) -> None:
    add_package(project(tmp_path, CLAIM, acme_claims="FAST = 'it'\n"))
    add_package(tmp_path)
    assert TESTERS["fast"] == "it"
    assert with_third_party("podperf.testers", {"ours": "ours"}) == {"ours": "ours", "fast": "it"}


@pytest.mark.usefixtures("as_before")
def test_a_module_of_a_package_takes_no_other_modules_place(tmp_path: Path) -> None:
    code = "import tomllib\nFAST = tomllib.loads\n"
    add_package(project(tmp_path, CLAIM, acme_claims=code, tomllib="loads = None\n"))
    assert TESTERS["fast"] is not None


@pytest.mark.usefixtures("as_before")
def test_modules_may_be_below_src(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "acme_claims.py").write_text("FAST = 'it'\n")
    add_package(project(tmp_path, CLAIM))
    assert TESTERS["fast"] == "it"


NO_PACKAGE = {
    "": "names no part of podperf: no entry point in podperf.dataplanes, podperf.pod_runtimes",
    "project = 7": "names no part of podperf",
    '[project]\nname = "x"': "names no part of podperf",
    '[project.entry-points."podperf.claim"]\na = "b:c"': "names no part of podperf",
    "[project": "pyproject.toml is no TOML: ",
    CLAIM: r"fast \(podperf.testers\) cannot be loaded: ModuleNotFoundError: No module named 'acme_claims'",
    CLAIM.replace("acme_claims:FAST", ""): r"fast \(podperf.testers\) cannot be loaded: ",
    CLAIM.replace("fast", "trex"): "there is another part with the name trex",
}


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("text", NO_PACKAGE)
def test_a_folder_without_usable_parts_is_refused(text: str, tmp_path: Path) -> None:
    before = dict(TESTERS)
    for _ in range(2):
        with pytest.raises(PodperfError, match=NO_PACKAGE[text]):
            add_package(project(tmp_path, text))
    assert before == dict(TESTERS)


OPEN = {  # what another user owns or can write to, and how
    "the folder": (".", 0o777, 0),
    "a folder above": ("..", 0o777, 0),
    "its project": ("pyproject.toml", 0o666, 0),
    "a module": ("acme_claims.py", 0o666, 0),
    "a folder of modules": ("src", 0o777, 0),
    "the folder, by a group": (".", 0o775, 12345),
    "a module, by a group": ("acme_claims.py", 0o664, 12345),
    "the folder, as /tmp is": (".", 0o1777, 0),  # a folder acme_claims there comes before the file acme_claims.py
    "somebody's module": ("acme_claims.py", 0o644, 12345),
}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("what", OPEN)
def test_root_imports_no_code_that_another_user_can_change(what: str, tmp_path: Path) -> None:
    (tmp_path / "acme" / "src").mkdir(parents=True)
    folder = project(tmp_path / "acme", CLAIM, acme_claims="FAST = 'it'\n")
    name, mode, owner = OPEN[what]
    (folder / name).chmod(mode)
    os.chown(folder / name, 0 if mode & 0o020 else owner, owner)
    with pytest.raises(PodperfError, match=r"(can write to|owns) /.*, and root would run its code"):
        add_package(folder)
    assert "acme_claims" not in sys.modules


# --- the package of the page -----------------------------------------------------------------------------------------


def loaded(file: Path) -> Topology:
    return load_topology(file, DATA_PLANES, POD_RUNTIMES, TESTERS)


@pytest.mark.usefixtures("as_before")
def test_the_topology_of_the_page_has_the_data_plane_and_the_tester(tmp_path: Path) -> None:
    write_package(tmp_path)
    topology = loaded(write_topology(tmp_path))
    assert (topology.tester.kind.type, topology.tester.engine) == ("acme-generator", "auto")
    assert (topology.tester.kind.left_card, topology.tester.kind.right_card) == (2, 3)  # type: ignore[attr-defined]
    assert not topology.existing_ports
    assert "acme-switch" in DATA_PLANES
    assert TESTERS["acme-generator"].settings_schema


@pytest.mark.usefixtures("as_before")
def test_settings_that_are_left_out_have_the_defaults_of_their_schema(tmp_path: Path) -> None:
    write_package(tmp_path)
    text = block("yaml").replace(", settings: {left_card: 2, right_card: 3}", "")
    kind = loaded(write_topology(tmp_path, text)).tester.kind
    assert (kind.left_card, kind.right_card) == (0, 1)  # type: ignore[attr-defined]


HERE = "acme-lab.yaml:4: tester"
WRONG = {
    "{type: acme-generatr}": (
        f"{HERE}.type: found 'acme-generatr'; allowed: {', '.join(sorted({*TESTERS, 'acme-generator'}))}; "
        "did you mean 'acme-generator'?"
    ),
    "{type: acme-generator, settings: {right_cart: 2}}": (
        f"{HERE}.settings.right_cart: unknown key; allowed: left_card, right_card; did you mean 'right_card'?"
    ),
    "{type: acme-generator, settings: {left_card: 2, right_card: 2}}": (
        f"{HERE}.settings.right_card: found 2; allowed: another card than the left port's"
    ),
    "{type: acme-generator, settings: {left_card: 1}}": (
        f"{HERE}.settings.right_card: found nothing; allowed: another card than the left port's"
    ),
    "{type: acme-generator, settings: {left_card: 9}}": (
        f"{HERE}.settings.left_card: found 9; allowed: an integer from 0 to 7"
    ),
    "{type: acme-generator, settings: [2]}": (
        f"{HERE}.settings: found a list; allowed: a mapping with the keys left_card, right_card"
    ),
    "{type: acme-generator, engine: xdp}": f"{HERE}.engine: unknown key; allowed: left_card, right_card",
    "{type: software, settings: {left_card: 2}}": f"{HERE}.settings.left_card: unknown key; allowed: engine",
}


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("tester", WRONG)
def test_a_wrong_setting_of_the_tester_is_one_line(tester: str, tmp_path: Path) -> None:
    write_package(tmp_path)
    text = f"version: 1\nname: acme-lab\nthird_party: [acme-podperf]\ntester: {tester}\n"
    with pytest.raises(TopologyError) as caught:
        loaded(write_topology(tmp_path, text))
    assert [line.removeprefix(f"{tmp_path}/") for line in caught.value.problems] == [WRONG[tester]]


FAULTS = {
    ("AcmeSettings(**tester", "AcmeSettings(1, **tester"): " cannot read its settings: TypeError: ",
    ('type = "acme-generator"', 'type = "acme"'): " says that its type is 'acme'$",
}


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("fault", FAULTS, ids=FAULTS.values())
def test_a_tester_that_stumbles_over_its_settings_is_one_line(fault: tuple[str, str], tmp_path: Path) -> None:
    package = write_package(tmp_path)
    (package / f"{MODULE}.py").write_text(block("python").replace(*fault))
    said = f"yaml:4: tester.settings: the tester acme-generator{FAULTS[fault]}"
    with pytest.raises(TopologyError, match=said) as caught:
        loaded(write_topology(tmp_path))
    assert len(caught.value.problems) == 1


@pytest.mark.usefixtures("as_before")
def test_a_folder_without_a_package_is_one_line_of_the_topology(tmp_path: Path) -> None:
    text = block("yaml").replace("tester:", "traffic: {flows: 1}\n#")
    with pytest.raises(TopologyError) as caught:
        loaded(write_topology(tmp_path, text))
    assert caught.value.problems == (
        f"{tmp_path}/acme-lab.yaml:3: third_party[0]: found 'acme-podperf'; allowed: the folder of a Python package "
        f"with parts of podperf ({tmp_path}/acme-podperf/pyproject.toml cannot be read: No such file or directory)",
    )


@pytest.mark.usefixtures("as_before")
def test_a_plan_knows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_package(tmp_path)
    assert call(["check", str(write_topology(tmp_path)), "--plan", "acme-switch"]) == 0
    shown = capsys.readouterr().out
    assert "acme-switch, 1 pod, on acme-lab: what a run would do" in shown
    assert "podperf-tester" in shown and "acme0" in shown
