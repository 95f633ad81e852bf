"""A keyword library that stands for `Open Testbed`, which needs root. Tests of keywords write it into a file."""

from __future__ import annotations

# `open_with(session)` is for the keyword of a test that makes the session.
OPENED_TESTBED = """
from types import SimpleNamespace
from robot.api.deco import keyword
from robot.libraries.BuiltIn import BuiltIn

def open_with(session):
    BuiltIn().get_library_instance("Testbed")._run = SimpleNamespace(session=session)

@keyword
def testbed_is_closed():
    BuiltIn().get_library_instance("Testbed")._run = None
"""
