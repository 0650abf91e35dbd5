"""An observation line as it is kept in a run: encoded once, as text, of which the long parts are parsed when asked for.

Checks and exchanges are nearly all of a report. What is written to the file and sealed is this very text; once it is in
the file, it is read from there when asked for, so that a run does not hold its report in memory.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from sys import intern
from typing import Any, ClassVar

from tessera_conformance.reports.line_defaults import LONG, whole

FOLDER = "<folder>"
"""What stands for the folder of a case's files, which is another one in every run."""


class ObservedLine(Mapping[str, Any]):
    """The line of one case.

    `runs` are the places in the text where a field named run begins and ends, in turn; `long` is where the checks and
    exchanges begin and end, which stand side by side; of a line with `evidence` both are the same place.
    """

    __slots__ = ("_long", "_parsed", "_runs", "_text")
    _parsed_last: ClassVar[tuple[ObservedLine, dict[str, Any]] | None] = None
    """The line whose long fields were asked for last, and these: the checks and the exchanges are asked for in turn."""

    def __init__(self, text: str, runs: Sequence[int], long: Sequence[int]) -> None:
        self._text: str | tuple[Path, int, int] = text
        """The text, or the file that holds it and where in it the text begins and ends, in bytes."""
        self._runs = array("Q", runs)
        self._long = tuple(long)
        self._parsed: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The whole line."""
        if isinstance(self._text, str):
            return self._text
        path, start, end = self._text
        with open(path, "rb", buffering=0) as file:
            file.seek(start)
            return file.read(end - start).decode()

    def keep_in(self, path: Path, start: int, end: int) -> None:
        """From now on the text is read from a file, of which it is the bytes from `start` up to `end`."""
        self._text = (path, start, end)

    def parts(self) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        """What makes this line again, in another process."""
        return self.text, tuple(self._runs), self._long

    @property
    def text_without_run(self) -> str:
        """The text without what differs between two runs of the same behaviour."""
        text = self.text
        places = [0, *self._runs, len(text)]
        return "".join(text[start:end] for start, end in zip(places[::2], places[1::2], strict=True))

    @property
    def long_text(self) -> str:
        """The fields `checks` and `exchanges` as JSON, with a comma between."""
        start, end = self._long
        return self.text[start:end] or '"checks":[],"exchanges":[]'

    def long_fields(self) -> dict[str, Any]:
        """Checks and exchanges, parsed together."""
        found: dict[str, Any] = json.loads(f"{{{self.long_text}}}")
        return found

    @property
    def _short(self) -> dict[str, Any]:
        if self._parsed is None:
            (start, end), text = self._long, self.text
            line: dict[str, Any] = json.loads(text if start == end else text[:start] + text[end + 1 :])
            self._parsed = {intern(key): _shared(value) for key, value in whole(line).items() if key not in LONG}
        return self._parsed

    def __getitem__(self, key: str) -> Any:
        short = self._short
        if key in short:
            return short[key]
        kept = ObservedLine._parsed_last
        if kept is None or kept[0] is not self:
            ObservedLine._parsed_last = kept = (self, self.long_fields())
        return kept[1][key]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._short, *LONG])

    def __len__(self) -> int:
        return len(self._short) + len(LONG)


def _shared(value: Any) -> Any:
    """The value, held once for all lines: clauses, levels and verdicts are the same in many."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return _list_of(*value)
    return intern(value) if isinstance(value, str) else value


@cache
def _list_of(*texts: str) -> list[str]:
    return [*map(intern, texts)]


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

    def text(self) -> str:
        """What there is."""
        return "".join(self._parts)

    def line(self, long: Sequence[int]) -> ObservedLine:
        """The whole line."""
        return ObservedLine(self.text(), self.runs, long)
