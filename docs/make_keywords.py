"""Makes the keyword documentation in build/keywords. Fails if a keyword has no documentation.

With --check, the pages go to a temporary folder.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from robot.libdocpkg import LibraryDocumentation

ROOT = Path(__file__).parents[1]
SOURCES = (*sorted(ROOT.glob("libraries/[A-Z]*.py")), *sorted(ROOT.glob("resources/*.resource")))


def make_pages(sources: Iterable[Path], folder: Path) -> Iterator[str]:
    """Write Robot Framework's own page for each library and resource file. Yields keywords without documentation."""
    for source in sources:
        made = LibraryDocumentation(str(source))
        yield from (f"{made.name}.{each.name}" for each in made.keywords if not each.doc)
        made.convert_docs_to_html()
        made.save(folder / f"{source.stem}.html", "HTML")


def main() -> int:
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) if "--check" in sys.argv else ROOT / "build" / "keywords"
        folder.mkdir(parents=True, exist_ok=True)
        if bare := list(make_pages(SOURCES, folder)):
            print(f"without documentation: {', '.join(bare)}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
