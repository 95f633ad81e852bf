"""Text that others wrote (a worker, a program, a file), made fit to be shown on a terminal."""

from __future__ import annotations

import re

# Control characters but for line end and tab, which could move the cursor, recolour or retitle a terminal; characters
# that reorder or hide their neighbours; halves of surrogate pairs, which no terminal's encoding has.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def shown_plainly(text: str) -> str:
    """The text with each such character replaced by how Python writes it: `\\x1b` for an escape."""
    return _UNFIT.sub(lambda found: ascii(found[0])[1:-1], text)
