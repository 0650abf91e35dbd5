"""An implementation that answers nothing: the first cases that ask it all crash, hang or get nonsense."""

from __future__ import annotations

from collections.abc import Iterator

from tessera_conformance.reports.claim import Line

FIRST = 10
"""Cases that are asked before it is given up."""
FAULTS = ("crash", "hang", "protocol_error")
NOT_ASKED = ("unsupported", "inapplicable")


class Silence:
    """Watches the first cases of a run."""

    def __init__(self) -> None:
        self._cases = 0
        self._reasons: dict[str, int] = {}
        self._broken = False

    def after(self, line: Line) -> bool:
        """True once: behind the last of the first cases, if no call of any of them had an answer."""
        if self._broken or self._cases >= FIRST or line["verdict"] in NOT_ASKED:
            return False
        excused = line["disposition"] != "none"  # by a known deviation: somebody has seen it run
        if line["verdict"] not in FAULTS or excused or any(_answers(line)):
            self._broken = True
            return False
        self._cases += 1
        reason = f"{str(line['verdict']).replace('_', ' ')}: {line['reason']}"
        self._reasons[reason] = self._reasons.get(reason, 0) + 1
        return self._cases == FIRST

    def sentence(self) -> str:
        """What became of those cases: the commonest reason."""
        reason, number = max(self._reasons.items(), key=lambda item: item[1])
        how = "all" if number == FIRST else f"without an answer, {number}"
        return f"the first {FIRST} cases ended {how} in {reason}"


def _answers(line: Line) -> Iterator[bool]:
    for exchange in line["exchanges"]:
        yield exchange["method"] != "session.reset" and "fault" not in exchange["observation"]
