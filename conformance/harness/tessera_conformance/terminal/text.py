"""Text of others as a terminal may get it: no escape sequence, and nothing that turns the order of what is shown."""

from __future__ import annotations

import re

HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
)
"""Control and format characters, but for the line feed and the tab, as a class of a regular expression."""
_HIDDEN = re.compile(f"[{HIDDEN}]")


TAIL_LINES = 12
"""Lines that are shown of what an implementation wrote."""


def quoted_tail(text: str, indent: str = "  ") -> list[str]:
    """The last lines of what another program wrote, each behind a bar."""
    return [f"{indent}| {line}" for line in text.strip().splitlines()[-TAIL_LINES:]]


def visible(text: str) -> str:
    """The text with each hidden character written as Python escapes it."""
    return escaped(_HIDDEN, text)


def escaped(unwanted: re.Pattern[str], text: str) -> str:
    """The text with each character that a rendering cannot show written as Python escapes it."""
    return unwanted.sub(lambda found: ascii(found[0])[1:-1], text)
