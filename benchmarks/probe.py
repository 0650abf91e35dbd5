"""Revealing how numpy adds 256 terms, through the whole protocol, beside numpy's own time for as many bare calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from measurement import Measurement, Outcome, in_turns

from tessera_conformance.probe.calls import Subject
from tessera_conformance.probe.run import probe
from tessera_conformance.session import Session
from tessera_conformance.transports.locate import locate

ROOT = Path(__file__).parents[1]
TERMS = 256
SUBJECTS = (Subject("sum", (TERMS,), "fp32"), Subject("matmul", (8, TERMS, 8), "fp32"))


def measure() -> list[Outcome]:
    """One row for each operation."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    session = Session(locate("ops:conformance.adapters.numpy_adapter:TABLE"))
    outcomes: list[Outcome] = [_probing(session, subject) for subject in SUBJECTS]
    session.close()
    return outcomes


def _probing(session: Session, subject: Subject) -> Measurement:
    calls = probe(session, subject).calls

    def whole() -> None:
        probe(session, subject)
        session.exchanges.clear()

    bare = _bare(subject)
    ours, peer = in_turns(whole, lambda: [bare() for _ in range(calls)], 5)
    return Measurement(f"probe {subject}", ours, f"numpy, {calls} calls", peer, ours * 1e3, "ms", 100)


def _bare(subject: Subject) -> Callable[[], object]:
    a, *b = (np.ones(shape, np.float32) for shape in subject.shapes)
    return lambda: np.matmul(a, b[0]) if b else np.sum(a)
