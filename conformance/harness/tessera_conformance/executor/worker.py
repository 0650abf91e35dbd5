"""A unit of work on a worker of the cluster: a process of its own, and the lines in which it writes its answers."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tessera_conformance import __version__
from tessera_conformance.cases import chapter_files, clauses_directory
from tessera_conformance.documents import read_json
from tessera_conformance.registry.cases import digest_of_contents
from tessera_conformance.transports.rpc import EXCHANGE, ProcessFamily, end_families

# The parts that must be the same on every machine of a run, so that a case can be judged on any of them.


VERSION = "tessera-conformance"
REFERENCE = "tessera_reference"
DIGITS = 12


def own_identity() -> dict[str, str]:
    """Return the version of this installation, and digests of its parts, by name."""
    interfaces = [path for _, path in sorted(chapter_files("interface.toml").items())]
    return {
        VERSION: __version__,
        "clause registry (clauses.lock)": _digest([clauses_directory() / "clauses.lock"]),
        "interface (interface.toml)": _digest(interfaces),
        "suite, vectors and harness": digest_of_contents()[:DIGITS],
        "reference": _digest(_reference()),
    }


def difference(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """Return the first difference of another machine, as a sentence about it; "" if there is none."""
    for name, ours in here.items():
        theirs = there.get(name, "none")
        if theirs != ours:
            return f"has {name} {theirs}, where this machine has {ours}: install the same on every machine"
    return ""


def _reference() -> list[Path]:
    """Return the modules of the reference, which need not be installed and is not imported."""
    spec = importlib.util.find_spec(REFERENCE)
    folders = [] if spec is None else map(Path, spec.submodule_search_locations or ())
    return [path for folder in folders for path in sorted(folder.rglob("*.py"))]


def _digest(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:DIGITS]


# The answers of the process that does a unit, line by line, and their reading by its worker.
#
# A line that the process did not finish before it died is ignored, so that its finished answers count.


ORDER, ANSWERS, OUTPUT = "order.json", "answers.jsonl", "output.txt"
"""The files in the folder of a unit: the work, its result, and its output."""
TAIL = 2000
"""The most characters of the output that are quoted."""

Body = Callable[[Mapping[str, Any], Sequence[str], "AnswerWriter"], None]
"""Does the tasks, under the settings of the run; without tasks, it only greets."""


@dataclass
class Answer:
    """The answers of a unit."""

    results: list[tuple[str, Any]] = field(default_factory=list)
    """Each task that ended with its result, which consists of JSON values."""
    running: str | None = None
    """The task that began and did not end."""
    greeting: Any = None
    """The identity of the process that does the tasks, as far as it must be the same everywhere."""
    refusal: str = ""
    """The reason for which this machine cannot do the unit."""
    failure: str = ""
    """The failure in the harness."""
    whole: bool = False
    """True if the process ended by itself."""
    worker: str = ""


class AnswerWriter:
    """Writes the answers of a unit into its folder; each line is in the file before the next task begins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = (folder / ANSWERS).open("w", encoding="ascii", buffering=1)

    def write(self, member: str, value: Any) -> None:
        """Write a line: a member of `Answer` and its value, or `result`, a task and its result."""
        self._file.write(json.dumps([member, value]) + "\n")

    def output(self) -> str:
        """Return the end of the output of this process."""
        sys.stdout.flush()
        sys.stderr.flush()
        path = self.folder / OUTPUT
        return path.read_text(encoding="utf-8", errors="replace").strip()[-TAIL:] if path.exists() else ""


class NoAnswer(ValueError):
    """Bytes that are no answers of a unit; has the reason."""


def read_answer(data: object) -> Answer:
    """Return the answer that a worker sent. Raises `NoAnswer`."""
    if not isinstance(data, bytes):
        raise NoAnswer(f"{type(data).__name__} instead of bytes, as no worker of this version sends")
    try:
        lines = [(member, value) for member, value in map(read_json, data.split(b"\n")[:-1])]
        results = [(value[0], value[1]) for member, value in lines if member == "result"]
        members = dict(lines)
        members.pop("result", None)
        if members.get("running") in dict(results):
            del members["running"]
        return Answer(results, **members)
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise NoAnswer(str(error)) from None


def do_unit(body: Body) -> int:
    """Run the process of a unit: the first argument is the folder of the unit."""
    folder = Path(sys.argv[1])
    worker = os.dup(0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    threading.Thread(target=_end_with_the_worker, args=(worker, folder), daemon=True).start()
    order = json.loads((folder / ORDER).read_text(encoding="ascii"))
    answers = AnswerWriter(folder)
    differs = difference(order["identity"], own_identity())
    if differs:
        answers.write("refusal", differs)
    else:
        try:
            body(order["settings"], order["tasks"], answers)
        except Exception as error:
            answers.write("failure", f"{type(error).__name__}: {error}")
    answers.write("whole", True)
    return 0


def _end_with_the_worker(worker: int, folder: Path) -> None:
    """End this process and all that it started once the input from the worker ends, which is empty: the worker died."""
    while os.read(worker, 1):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    end_families()
    os.killpg(0, signal.SIGKILL)


# Units of work on a worker of the cluster: each in a process of its own, which ends with the worker.


_LOCK = threading.Lock()
_RUNNING: dict[str, list[ProcessFamily]] = {}
"""The processes of the units of each run."""
_STOPPED: set[str] = set()
"""The runs that have been stopped: no further unit of them begins."""


def perform(order: str, *, module: str, run: str) -> bytes:
    """Do a unit of a run, which a module does as a program; a process that dies leaves its finished answers."""
    with TemporaryDirectory(prefix="tessera-unit-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / ORDER).write_text(order, encoding="ascii")
        with (folder / OUTPUT).open("wb") as output:
            _complete([sys.executable, "-m", module, name], output.fileno(), run, name)
        from distributed import get_worker

        path = folder / ANSWERS  # lines of JSON, since unpickling may run any code; the first one names the worker
        named = json.dumps(["worker", get_worker().address]).encode() + b"\n"
        return named + (path.read_bytes() if path.exists() else b"")


def stop(run: str) -> None:
    """End the units of a run, and prevent others from beginning."""
    with _LOCK:
        _STOPPED.add(run)
        for family in _RUNNING.get(run, ()):
            family.end()


def _complete(command: list[str], output: int, run: str, folder: str) -> None:
    """Wait for the process of a unit, and leave none behind that it started; start none if the run was stopped.

    Its open standard input shows that this process is alive, which may do other work of its user meanwhile.
    """
    family = ProcessFamily(adopts=False)
    options = {"stdin": subprocess.PIPE, "stdout": output, "stderr": subprocess.STDOUT, "start_new_session": True}
    with _LOCK:
        if run in _STOPPED:
            return
        process = family.start(command, {EXCHANGE: folder}, **options)
        _RUNNING.setdefault(run, []).append(family)
    with process:
        process.wait()
    with _LOCK:
        family.end()
        _RUNNING[run].remove(family)
