"""An observation line as it is kept in a run: encoded once, as text, of which the long parts are parsed when asked for.

Checks and exchanges are nearly all of a report. As text they take a tenth of the memory that they take as objects, and
what is written to the file and sealed is this very text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

FOLDER = "<folder>"
"""What stands for the folder of a case's files, which is another one in every run."""
LONG = ("checks", "exchanges")


class ObservedLine(Mapping[str, Any]):
    """The line of one case.

    `runs` are the places in the text where a field named run begins and ends, in turn; `long` is where the checks and
    exchanges begin and end, which stand side by side.
    """

    def __init__(self, text: str, runs: Sequence[int], long: Sequence[int]) -> None:
        self.text = text
        self._runs = tuple(runs)
        self._long = tuple(long)

    def parts(self) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        """What makes this line again, in another process."""
        return self.text, self._runs, self._long

    @property
    def text_without_run(self) -> str:
        """The text without what differs between two runs of the same behaviour."""
        places = [0, *self._runs, len(self.text)]
        return "".join(self.text[start:end] for start, end in zip(places[::2], places[1::2], strict=True))

    @property
    def long_text(self) -> str:
        """The fields `checks` and `exchanges` as JSON, with a comma between."""
        start, end = self._long
        return self.text[start:end]

    @cached_property
    def _short(self) -> dict[str, Any]:
        start, end = self._long
        short: dict[str, Any] = json.loads(self.text[:start] + self.text[end + 1 :])
        return short

    def __getitem__(self, key: str) -> Any:
        return json.loads(f"{{{self.long_text}}}")[key] if key in LONG else self._short[key]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._short, *LONG])

    def __len__(self) -> int:
        return len(self._short) + len(LONG)


class LineBuilder:
    """The text of a line as it grows; the folder of the case's files is `FOLDER` there."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = "" if folder is None else json.dumps(str(folder))[1:-1]
        self._parts: list[str] = []
        self.length = 0
        self.runs: list[int] = []

    def add(self, text: str) -> None:
        """More of the line."""
        text = text.replace(self._folder, FOLDER) if self._folder else text
        self._parts.append(text)
        self.length += len(text)

    def add_run(self, text: str) -> None:
        """A field named run, after others of its object."""
        self.runs.append(self.length)
        self.add(f',"run":{text}')
        self.runs.append(self.length)

    def line(self, long: Sequence[int]) -> ObservedLine:
        """The whole line."""
        return ObservedLine("".join(self._parts), self.runs, long)
