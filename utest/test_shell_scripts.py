"""Shell scripts beside the modules that run them."""

from __future__ import annotations

from pathlib import Path

from podperf.hosts.base import shell_script

ROOT = Path(__file__).parents[1]


def test_a_script_is_run_without_its_comments(tmp_path: Path) -> None:
    text = "#!/bin/sh -e\n# Argument: a number.\n\n    # shellcheck disable=SC1\necho ${1#0}\n:\n"
    (tmp_path / "some.sh").write_text(text)
    assert shell_script("some.sh", beside=str(tmp_path / "module.py")) == "echo ${1#0}\n:"


def test_shellcheck_sees_every_script() -> None:
    settings = (ROOT / "tox.ini").read_text().split()
    scripts = [
        path.relative_to(ROOT) for folder in ("libraries", "atest", "docs") for path in (ROOT / folder).rglob("*.sh")
    ]
    assert scripts
    assert [str(script) for script in scripts if str(script) not in settings] == []
