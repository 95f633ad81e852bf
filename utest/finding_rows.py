"""The claims of the rows of all suites about findings, by the names of their tests."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from robot.api import TestSuite as Suite
from robot.running import ResourceFile, TestCase

from podperf.errors import Unavailable
from podperf.experiments.claim import Claim
from podperf.experiments.claims import claim_of

ROOT = Path(__file__).parents[1]
KEYWORDS = ResourceFile.from_file_system(ROOT / "resources" / "finding.resource").keywords
TESTS = [test for test in Suite.from_file_system(ROOT / "tests").all_tests if {"finding", "published"} & set(test.tags)]


def claim_of_row(test: TestCase) -> Claim | None:
    """The claim of a row. None if the row is no claim, and Unavailable if no document says how to set it up."""
    for keyword in KEYWORDS:
        names = re.findall(r"\$\{(.+?)\}", keyword.name)
        pattern = re.sub(r"\\\$\\\{.+?\\\}", "(.+)", re.escape(keyword.name))
        if not (found := re.fullmatch(pattern, str(test.template))):
            continue
        values = dict(zip(names, found.groups(), strict=True)) | {"TEST DOCUMENTATION": test.doc, "EMPTY": ""}
        values |= {name: str(value) for name, value in keyword.args.defaults.items()}
        lists = {variable.name: list(variable.value) for variable in test.parent.resource.variables}
        cells = [cell for each in test.body[0].args for cell in lists.get(str(each), [str(each)])]
        options = dict(each.split("=", 1) for each in cells if each.split("=", 1)[0] in keyword.args.defaults)
        words = [each for each in cells if "=" not in each]
        positional = [each for each in keyword.args.positional_or_named if each not in keyword.args.defaults]
        values |= dict(zip(positional, words, strict=False)) | options
        rest = words[len(positional) :]
        columns: list[str] = []
        settings: dict[str, str] = {}
        for word in map(str, keyword.body[0].args):
            filled = word
            for name, value in values.items():
                filled = filled.replace(f"${{{name}}}", value)
            filled = filled.replace("${EMPTY}", "")
            if word.startswith("@{"):
                columns += rest
            elif re.match(r"[a-z]+=", word):
                settings |= [filled.split("=", 1)]
            else:
                columns.append(filled)
        return claim_of(*columns, **settings)
    return None


@cache
def claims() -> dict[str, Claim]:
    """All claims by the names of their tests, without those that cannot be set up."""
    found = {}
    for test in TESTS:
        try:
            claim = claim_of_row(test)
        except Unavailable:
            continue
        if claim is not None:
            found[test.name] = claim
    return found
