"""The code gives the messages that the documentation explains. Topologies in it are valid, and its links lead
somewhere."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from robot.model import TagPattern

from make import made
from podperf.dataplanes import DATA_PLANES
from podperf.experiments.comparison_files import load_comparison
from podperf.report.conformance import SectionStatus
from podperf.testers import TESTERS
from podperf.topology import load_topology

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
INDEX = ROOT / "docs/README.md"
GLOSSARY = ROOT / "docs/glossary.md"
DOCUMENTS = ("first-lab", "trex", "virtual-worker")
HEADS = ("| message |", "| it says |")


def quoted(document: str) -> Iterator[str]:
    """The messages in the first column of the tables of messages, in backquotes there."""
    inside = False
    for line in (ROOT / f"docs/{document}.md").read_text(encoding="utf-8").splitlines():
        inside = line.startswith("|") and (inside or line.startswith(HEADS))
        if inside:
            yield from re.findall(r"`([^`]+)`", line.split(" | ")[0])


@cache
def said() -> str:
    """All texts in the code, with NULs between them. `…` stands for a value that only a run knows."""
    texts = [""]
    for path in (ROOT / "libraries").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                texts.append("".join(value.value if isinstance(value, ast.Constant) else "…" for value in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\0".join([*texts, ""])


def fixed_words(message: str) -> list[list[str]]:
    """The words that are no example, as far as they stand together: examples have a digit in them, or are a `…`."""
    return [words for part in re.split(r"\S*[\d…]\S*", message) if (words := re.findall(r"\w+", part))]


def is_said(words: list[str]) -> bool:
    """Whether the code has these words in a row. One of its texts may be inserted into another one."""
    if found(words):
        return True
    places = range(1, len(words))
    return any(
        found(words[:place], after=r"\W*?[…\0]") and found(words[place:], before=r"[…\0]\W*?") for place in places
    )


def found(words: list[str], before: str = r"\b", after: str = r"\b") -> bool:
    return re.search(before + r"[^\w…\0]+".join(words) + after, said()) is not None


@pytest.mark.parametrize(("document", "message"), [(each, text) for each in DOCUMENTS for text in quoted(each)])
def test_a_message_that_is_explained_is_given(document: str, message: str) -> None:
    words = fixed_words(message)
    assert words, f"{document}.md quotes {message!r}, which has no fixed words"
    for part in words:
        assert is_said(part), f"{document}.md quotes {message!r}, and nothing in libraries/ says {' '.join(part)!r}"


def blocks(page: Path, language: str) -> list[str]:
    """The page's blocks of code in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


FILES = [
    pytest.param(page, text, id=f"{page.stem}-{number}")
    for page in PAGES
    if page.stem != "third-party"  # its topology needs the package of the page (test_third_party.py)
    for number, text in enumerate(blocks(page, "yaml"))
]


@pytest.mark.parametrize(("page", "text"), FILES)
def test_a_file_in_the_documentation_is_valid(page: Path, text: str, tmp_path: Path) -> None:
    file = tmp_path / "example.yaml"
    file.write_text(text)
    if "variants:" in text:
        for each in blocks(page, "yaml"):  # variants may name topologies of the page, whose files have their names
            if named := re.search("^name: (.+)", each, re.MULTILINE):
                (tmp_path / f"{named[1]}.yaml").write_text(each)
        load_comparison(file)
    else:
        load_topology(file, DATA_PLANES, testers=TESTERS)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def without_code(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """As GitHub makes them: headings in small letters, without punctuation, with hyphens for spaces."""
    headings = re.findall(r"^#+ (.*)", without_code(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_link_leads_to_a_file_and_a_heading_that_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        if target.startswith(("https:", "http:")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name} links to {target}"
        assert not anchor or file.suffix != ".md" or anchor in anchors(file), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_line_of_prose_fits_120_columns(page: Path) -> None:
    long = [line for line in without_code(page).splitlines() if len(line) > 120 and not line.startswith("|")]
    assert not long


TEXT_FILES = [*(ROOT / "topologies").glob("*.yaml"), *(ROOT / "resources/published").glob("*.yaml")]


@pytest.mark.parametrize("file", sorted(TEXT_FILES), ids=name_of)
def test_a_line_of_a_topology_or_a_published_table_fits_120_columns(file: Path) -> None:
    assert not [line for line in file.read_text(encoding="utf-8").splitlines() if len(line) > 120]


FILES_WITH_COMMANDS = [*PAGES, *(ROOT / "docs/ci").iterdir(), *(ROOT / "topologies").rglob("*.yaml")]


@pytest.mark.parametrize("file", FILES_WITH_COMMANDS, ids=name_of)
def test_robot_framework_8_will_understand_each_filter_as_this_version_does(file: Path) -> None:
    filters = re.findall(r"--(?:include|exclude)[ =](?:'([^']+)'|([\w*][\w.*-]*))", file.read_text(encoding="utf-8"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for in_quotes, word in filters:
            TagPattern.from_string(in_quotes or word)


def links(page: Path) -> set[Path]:
    """The files of the repository that the page links to."""
    targets = re.findall(r"\]\(([^)\s#]+)[^)]*\)", without_code(page))
    return {(page.parent / target).resolve() for target in targets if not target.startswith(("https:", "http:"))}


def test_the_readme_is_short_and_leads_to_the_index_and_the_glossary() -> None:
    readme = ROOT / "README.md"
    assert len(readme.read_text(encoding="utf-8").splitlines()) <= 150
    assert {INDEX, GLOSSARY} <= links(readme)


def test_the_index_leads_to_every_page() -> None:
    assert {each for each in PAGES if each.is_relative_to(ROOT / "docs")} - {INDEX} <= links(INDEX)


def test_what_follows_from_the_code_is_up_to_date() -> None:
    outdated = [name_of(path) for path, text in made() if path.read_text(encoding="utf-8") != text]
    assert not outdated, "make them again: .venv/bin/python docs/make.py"


def words_of_the_glossary() -> list[str]:
    """The first cells of the glossary's tables, without the heads."""
    rows = re.findall(r"^\| \*\*(.+?)\*\* \|", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    return [word for row in rows for word in row.split(", ")]


def test_the_glossary_names_each_word_once() -> None:
    words = words_of_the_glossary()
    assert words
    assert sorted(words) == sorted(set(words))


@pytest.mark.parametrize("verdict", list(SectionStatus))
def test_the_glossary_has_each_verdict(verdict: str) -> None:
    assert verdict in words_of_the_glossary()


def names_of_tests() -> set[str]:
    files = [path for folder in ("utest", "atest") for path in (ROOT / folder).glob("test_*.py")]
    return {
        name
        for path in files
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }


def test_an_attack_that_the_documentation_tells_of_has_its_test() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/security.md").read_text(encoding="utf-8")))
    assert named <= names_of_tests(), f"no such tests: {', '.join(sorted(named - names_of_tests()))}"
