"""Makes the keyword documentation: `.tox/keywords/bin/python docs/make_keywords.py`. With --check it only checks it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

os.environ["SOURCE_DATE_EPOCH"] = "0"  # the same input gives the same page

from robot.libdocpkg import LibraryDocumentation

ROOT = Path(__file__).parents[1]
SOURCES = (*sorted(ROOT.glob("libraries/[A-Z]*.py")), *sorted(ROOT.glob("resources/*.resource")))


def page(source: Path, target: Path) -> str:
    """Robot Framework's own page for a library or resource file, without this machine's paths and Python."""
    LibraryDocumentation(str(source)).save(target, "HTML")
    made = re.sub(re.escape(f"{ROOT}/"), "", target.read_text(encoding="utf-8"))
    made = re.sub(r" \(Python [^)]* on \w+\)", "", made)
    return re.sub(r'"lineno": -?\d+', '"lineno": 1', made)  # a moved line is no news


def main() -> int:
    folder = ROOT / "docs" / "keywords"
    outdated = []
    for source in SOURCES:
        target = folder / f"{source.stem}.html"
        before = target.read_text(encoding="utf-8") if target.exists() else None
        made = page(source, target)
        target.write_text(before if "--check" in sys.argv and before is not None else made, encoding="utf-8")
        if before != made:
            outdated.append(target.name)
    if "--check" in sys.argv and outdated:
        again = ".tox/keywords/bin/python docs/make_keywords.py"
        print(f"out of date: {', '.join(outdated)}; make them again with: {again}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
