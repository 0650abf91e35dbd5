"""Golden vectors frozen and checked: by their sources, by the oracle, on workers; and the command `vectors`."""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tessera_conformance import cases
from tessera_conformance.cases import vectors_directory
from tessera_conformance.check import Difference, first_difference
from tessera_conformance.executor.engine import Engine, ExecutorLost, ExecutorUnavailable, Lost, units_of
from tessera_conformance.executor.worker import AnswerWriter, do_unit
from tessera_conformance.options import add_executor
from tessera_conformance.protocol import Hello, Returned, describe
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.terminal import Handler, Subparsers, print_problems, reporting_errors
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import FORMS, locate
from tessera_conformance.vectors import files as vector_folder
from tessera_conformance.vectors.building import Question, SourceTopic, load_sources, matches
from tessera_conformance.vectors.files import (
    MANIFEST,
    RESTORE,
    DamagedFile,
    Disagreement,
    OutOfStep,
    Provenance,
    Read,
    Unanswerable,
    Vector,
    VectorFile,
    VectorProblem,
    digest,
    parse,
    path_of,
    reader,
    render,
)
from tessera_conformance.vectors.judging import outputs_of

# The golden vectors whose answers are computed again, spread over the workers of a cluster.


MODULE = "tessera_conformance.commands.vectors"
LEAST_SECONDS = 2.0
"""The least seconds of a unit: its process starts and reads the files."""
SECONDS = 0.02
"""The approximate seconds for a vector."""


def settings_of(folder: Path | None, default: Path, files: Sequence[VectorFile]) -> dict[str, Any]:
    """Return the folder of the files, or None for that of each installation, and digests of their bytes."""
    place, paths = folder or default, [path_of(file.topic) for file in files]
    digests = {path: digest((place / path).read_bytes()) for path in paths}
    return {"folder": None if folder is None else str(folder.resolve()), "digests": digests}


def recompute_on_workers(engine: Engine, files: Sequence[VectorFile], least: float) -> Iterator[VectorProblem]:
    """Yield vectors whose independent check no longer gives the frozen answer, in the order of the files.

    Raises `ExecutorUnavailable`: a worker that came later is not like this machine; or `ExecutorLost`: the scheduler
    went away, or all workers did.
    """
    names = [vector.id for file in files for vector in file.vectors]
    rows_of = dict(engine.results(units_of(dict.fromkeys(names, SECONDS), engine.slots, least)))
    for name in names:
        rows = rows_of[name]
        if isinstance(rows, Lost):
            reason = "the process that computed it died" if rows.by_task else rows.reason
            yield Unanswerable(f"it was not computed again: {reason}", name, "run it again, without --executor")
        else:
            yield from (Disagreement(*row) for row in rows)


# Freezing answers: each source case runs on an implementation, and is confirmed independently before it is written.
#
# A topic is written only if every one of its cases was answered and confirmed. The oracle's bits are frozen, which
# differ from the implementation's in NaN codes at most.


@dataclass(frozen=True)
class Freezer:
    """Freezes topics into `folder` with the answers of the implementation behind `session`."""

    session: Session
    folder: Path
    wanted: tuple[str, ...] = ()
    reason: str | None = None

    def fill(self, topic: SourceTopic) -> tuple[list[VectorProblem], str]:
        """Answer, confirm and write one topic, without problems only; return these, and the outcome as a line."""
        path, reader = path_of(topic.name), vector_folder.reader(self.folder)
        vectors: list[Vector] = []
        problems: list[VectorProblem] = []
        try:
            frozen = parse(path, reader).by_name if (self.folder / path).exists() else {}
        except VectorProblem as problem:
            problems = [problem]
        for case in () if problems else topic.cases:
            before = frozen.get(case.name)
            try:
                if matches(f"{topic.name}/{case.name}", self.wanted):
                    vectors.append(self._freeze(topic.name, case, before))
                elif before is not None:
                    vectors.append(before)
            except VectorProblem as problem:
                problems.append(problem)
        if problems:
            return problems, f"{topic.name}: {len(problems)} problem(s), nothing written"
        changed = vector_folder.write(self.folder, render(VectorFile(topic.name, topic.documentation, tuple(vectors))))
        return [], f"{topic.name}: {len(vectors)} vectors, {', '.join(changed) or 'unchanged'}"

    def _freeze(self, topic: str, case: Question, before: Vector | None) -> Vector:
        expected = self._confirmed(topic, case)
        unchanged = before is not None and (before.call, before.expected) == (case.call, expected)
        if before is not None and not unchanged and self.reason is None:
            raise OutOfStep(
                "a frozen question or answer would change",
                before.id,
                "look at it with `vectors diff`, then say why with --reason TEXT",
            )
        if before is not None and unchanged and before.provenance.check == case.check:
            provenance = before.provenance
        else:
            hello = open_session(self.session)
            reason = self.reason if before else None
            provenance = Provenance(f"{hello.name} {hello.version}", case.check, reason=reason)
        return Vector(topic, case.name, case.clauses, case.comment, case.call, expected, provenance, case.features)

    def _confirmed(self, topic: str, case: Question) -> tuple[Tensor, ...]:
        """Return the answer of the check. Raises `Disagreement`: the implementation gives another."""
        where, remedy = f"{topic}/{case.name}", "correct the program or the implementation"
        self.session.reset()
        expected = case.check.answers(case.call.inputs)
        observation = self.session.call(case.call.method, case.call.params)
        if not isinstance(observation, Returned):
            raise Disagreement(describe(observation), where, remedy)
        outputs: list[Tensor] = outputs_of(case.call.method, case.call.params, observation.value)
        if len(outputs) != len(expected):
            raise Disagreement(f"{len(outputs)} results, expected {len(expected)}", where, remedy)
        for answer, confirmed in zip(outputs, expected, strict=True):
            difference = first_difference(answer, confirmed)
            if difference is not None:
                raise Disagreement(
                    f"{self.session.label} and {case.check.function} disagree: {difference.sentence()}",
                    where,
                    "find out by hand which is right; nothing was frozen",
                )
        return expected


def open_session(session: Session) -> Hello:
    """Start an implementation and return its Hello. Raises `Unanswerable`: it does not start."""
    hello = session.open()
    if isinstance(hello, Hello):
        return hello
    raise Unanswerable(describe(hello), session.label, "make the implementation start; see `tessera-conformance smoke`")


# Checks that the frozen vectors are unchanged, and that their sources still declare the same.


FILL = "run `vectors fill` and review the diff"


def integrity(folder: Path) -> Iterator[VectorProblem]:
    """Yield every change since freezing: bytes edited, files added, removed or renamed, lines reordered."""
    try:
        recorded = vector_folder.read_manifest(folder)
    except DamagedFile as problem:
        yield problem
        return
    present = vector_folder.files_in(folder)
    for path in sorted(recorded.keys() - set(present)):
        yield DamagedFile(f"the manifest lists {path}, which is missing", str(folder / MANIFEST), RESTORE)
    for path in present:
        if path not in recorded:
            yield DamagedFile("the manifest does not list this file", str(folder / path), "remove or fill it")
        elif digest((folder / path).read_bytes()) != recorded[path]:
            yield DamagedFile("the file is not the one that was frozen", str(folder / path), RESTORE)


def read_all(folder: Path, problems: list[VectorProblem]) -> list[VectorFile]:
    """Return every readable vector file; the faults of the others are added to `problems`."""
    files = []
    for path in vector_folder.vector_paths(folder):
        try:
            files.append(parse(path, vector_folder.reader(folder)))
        except VectorProblem as problem:
            problems.append(problem)
    return files


def in_step(files: Iterable[VectorFile], sources: Iterable[SourceTopic]) -> Iterator[VectorProblem]:
    """Yield differences of lines and sources: a line without a source, a source without a line, another question."""
    by_topic = {file.topic: file for file in files}
    for source in sources:
        file = by_topic.pop(source.name, VectorFile(source.name, source.documentation, ()))
        yield from _topic_in_step(file, source)
    for file in by_topic.values():
        yield from map(_without_source, file.vectors)


def recompute(vectors: Iterable[Vector], digest: hashlib._Hash | None = None) -> Iterator[VectorProblem]:
    """Yield vectors whose independent check no longer gives the frozen answer; feed the answers to `digest`."""
    for vector in vectors:
        check = vector.provenance.check
        try:
            answers = check.answers(vector.call.inputs)
        except (KeyError, TypeError, ValueError) as error:
            yield Disagreement(f"{check.function} cannot be applied: {error}", vector.id, "correct the source")
            continue
        if digest is not None:
            for answer in answers:
                digest.update(f"{vector.id} {answer.dtype} {[*answer.shape]} {answer.bits()}\n".encode())
        if len(answers) != len(vector.expected):
            wrong = [f"gives {len(answers)} results, {len(vector.expected)} are frozen"]
        else:
            found = map(first_difference, answers, vector.expected)
            wrong = [f"and the frozen answer differ: {difference.sentence()}" for difference in found if difference]
        for what in wrong:
            yield Disagreement(f"{check.function} {what}", vector.id, "find out by hand which is right")


def _topic_in_step(file: VectorFile, source: SourceTopic) -> Iterator[VectorProblem]:
    frozen, names = file.by_name, [case.name for case in source.cases]
    yield from (_without_source(vector) for vector in file.vectors if vector.name not in names)
    for case in source.cases:
        vector, where = frozen.get(case.name), f"{source.name}/{case.name}"
        if vector is None:
            yield OutOfStep("this source case has no frozen line", where, FILL)
            continue
        parts = ("clauses", "features", "comment", "call")
        changed = [name for name in parts if getattr(vector, name) != getattr(case, name)]
        changed += ["check"] if vector.provenance.check != case.check else []
        if changed:
            yield OutOfStep(f"the line and its source differ in {', '.join(changed)}", where, FILL)
    if sorted(frozen) == sorted(names) and list(frozen) != names:
        yield OutOfStep("the lines are in another order than their sources", source.name, FILL)
    if file.documentation != source.documentation:
        yield OutOfStep("the header's documentation is not that of the source", source.name, FILL)


def _without_source(vector: Vector) -> OutOfStep:
    return OutOfStep("this line has no source", vector.id, "restore the source, or drop the line with `vectors fill`")


# The changes between two sets of vectors, element by element.


def differences(old: dict[str, Vector], new: dict[str, Vector]) -> Iterator[str]:
    """Yield lines for people: `+` added, `-` removed, `~` changed with the changed parts below it."""
    for name in dict.fromkeys((*old, *new)):
        if name not in old:
            yield f"+ {name}"
        elif name not in new:
            yield f"- {name}"
        elif changes := list(_changes(old[name], new[name])):
            yield f"~ {name}"
            yield from (f"    {change}" for change in changes)
    common = old.keys() & new.keys()
    orders = ([name for name in side if name in common] for side in (old, new))
    moved = next((before for before, after in zip(*orders, strict=True) if before != after), None)
    if moved is not None:
        yield f"order: {moved} is elsewhere"


def load_side(place: str, folder: Path) -> dict[str, Vector]:
    """Return the vectors of a folder, or of `folder` in a git revision, by id.

    Raises `Unanswerable`: `place` is neither; or `DamagedFile`: a file cannot be read as vectors; hashes and
    formatting are not examined.
    """
    path = Path(place)
    if path.is_dir():
        return _vectors(vector_folder.vector_paths(path), vector_folder.reader(path))
    listing = _git(folder, place, "ls-tree", "-r", "--name-only", "-z", place, "--", ".").decode()
    paths = [path for path in listing.split("\0") if path.endswith(".jsonl")]
    return _vectors(paths, lambda path: _git(folder, place, "show", f"{place}:./{path}"))


def _git(folder: Path, revision: str, *arguments: str) -> bytes:
    if revision.startswith("-"):
        raise Unanswerable("not a revision", revision, "name a folder or a git revision")
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=False)
    except FileNotFoundError:
        raise Unanswerable("git is not installed", revision, "install git, or name two folders") from None
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip() or "git failed"
        raise Unanswerable(message, revision, "name a folder or a git revision")
    return done.stdout


def _vectors(paths: Iterable[str], read: Read) -> dict[str, Vector]:
    return {vector.id: vector for path in paths for vector in parse(path, read, strict=False).vectors}


def _changes(old: Vector, new: Vector) -> Iterator[str]:
    for field in ("clauses", "features", "comment", "provenance"):
        before, after = getattr(old, field), getattr(new, field)
        if before != after:
            yield f"{field}: {before} -> {after}"
    if old.call.method != new.call.method:
        yield f"method: {old.call.method} -> {new.call.method}"
    for name in dict.fromkeys((*old.call.params, *new.call.params)):
        before, after = old.call.params.get(name), new.call.params.get(name)
        if name != "inputs" and before != after:
            yield "the program differs" if name == "source" else f"{name}: {before} -> {after}"
    yield from _tensors("input", dict(old.call.inputs), dict(new.call.inputs))
    numbered = ({str(i): tensor for i, tensor in enumerate(vector.expected)} for vector in (old, new))
    yield from _tensors("expected output", *numbered)


def _tensors(kind: str, old: dict[str, Tensor], new: dict[str, Tensor]) -> Iterator[str]:
    for name in dict.fromkeys((*old, *new)):
        if name not in old or name not in new:
            yield f"{kind} {name}: {'added' if name in new else 'removed'}"
        elif (difference := first_difference(new[name], old[name])) is not None:
            yield f"{kind} {name}: {_sentence(difference)}"
        elif new[name] != old[name]:
            yield f"{kind} {name}: NaN codes differ"


def _sentence(difference: Difference) -> str:
    if difference.index is None:
        return difference.reason
    ulp = "" if difference.ulp is None else f", {difference.ulp} ULP"
    return (
        f"element {list(difference.index)}: {difference.expected_bits} -> {difference.actual_bits}{ulp} "
        f"({difference.elements} of {difference.of} elements differ)"
    )


# The process that recomputes the answers of a unit of vector files.


def compute(settings: Mapping[str, Any], names: Sequence[str], answers: AnswerWriter) -> None:
    """Recompute the answers of these vectors; without names, only check that all files are here."""
    folder = Path(settings["folder"] or vectors_directory())
    for path, expected in settings["digests"].items():
        file = folder / path
        if not file.is_file() or digest(file.read_bytes()) != expected:
            answers.write("refusal", f"has no {file}, or another one than this machine")
            return
    for path in settings["digests"]:
        topic = path.removesuffix(".jsonl")
        if not any(name.startswith(f"{topic}/") for name in names):
            continue
        for vector in parse(path, reader(folder)).vectors:
            if vector.id in names:
                answers.write("running", vector.id)
                findings = [(finding.what, finding.where, finding.remedy) for finding in recompute([vector])]
                answers.write("result", [vector.id, findings])


# The command line `tessera-conformance vectors`: fill, check, diff.
#
# Exit codes: 0 when all is well, 1 when there are problems or differences, 2 when the command cannot be carried out.


SOUND, PROBLEMS = 0, 1
FORESEEN = (VectorProblem, ImplementationUnavailable, ExecutorUnavailable, ExecutorLost)


def configure_vectors(parser: argparse.ArgumentParser) -> None:
    """The command `vectors`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    filling = _add(actions, "fill", "freeze the answers of an implementation that the oracle confirms", fill)
    filling.add_argument("--impl", default="reference", help=f"{FORMS} (default: reference)")
    filling.add_argument("--reason", metavar="TEXT", help="why frozen questions or answers change; kept in the line")
    filling.add_argument("names", nargs="*", metavar="NAME", help="chapters, topics or cases, such as ir/matmul")
    checking = _add(actions, "check", "examine the frozen vectors and compare them with their sources", check)
    checking.add_argument("--recompute", action="store_true", help="compute every answer again with the oracle")
    checking.add_argument("--digest", action="store_true", help="print the SHA-256 of all recomputed answers, one line")
    add_executor(checking.add_argument, LEAST_SECONDS)
    diffing = _add(actions, "diff", "show what changed between two sets of vectors", diff)
    diffing.add_argument("old", metavar="OLD", help="a folder, or a git revision such as HEAD")
    diffing.add_argument("new", nargs="?", metavar="NEW", help="the same (default: the folder of vectors)")


def default_sources() -> Mapping[str, Path]:
    """Return the sources of this checkout's vectors, by chapter."""
    return cases.chapter_files("vector_sources")


def _add(actions: Subparsers, name: str, help_text: str, handler: Handler) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=help_text, description=help_text)
    parser.add_argument("--vectors", type=Path, metavar="DIR", help="the frozen vectors (default: this suite's own)")
    parser.add_argument("--sources", type=Path, metavar="DIR", help="their sources (default: this suite's own)")
    parser.set_defaults(handler=reporting_errors(handler, *FORESEEN))
    return parser


def fill(args: argparse.Namespace) -> int:
    """Freeze every named topic, or all; a topic with a problem stays unchanged."""
    sources, names = _sources(args), tuple(args.names)
    topics = list(load_sources(sources, names))
    if not topics:
        raise Unanswerable("no source is called that", " ".join(names) or "the sources", "see the files of the sources")
    session = Session(locate(args.impl))
    freezer = Freezer(session, _vector_folder(args), names, args.reason)
    try:
        open_session(session)
        outcome = SOUND
        for topic in topics:
            problems, line = freezer.fill(topic)
            print_problems(problems)
            print(line)
            outcome = PROBLEMS if problems else outcome
        return outcome
    finally:
        session.close()


def check(args: argparse.Namespace) -> int:
    """Print all problems of the frozen vectors."""
    folder, sources = _vector_folder(args), _sources(args)
    if args.executor and not args.recompute:
        raise Unanswerable("there is nothing to spread", "--executor", "ask for --recompute, which takes long")
    if args.digest and (args.executor or not args.recompute):
        raise Unanswerable("no answers are computed here", "--digest", "ask for --recompute, without --executor")
    if not folder.is_dir():
        raise Unanswerable("there is no such folder", str(folder), "name the folder of vectors with --vectors")
    digest = hashlib.sha256() if args.digest else None
    problems = list(integrity(folder))
    files = read_all(folder, problems)
    vectors = [vector for file in files for vector in file.vectors]
    problems.extend(in_step(files, load_sources(sources)))
    if args.recompute and args.executor:
        settings = settings_of(args.vectors, folder, files)
        with Engine(args.executor, MODULE, settings) as engine:
            problems.extend(recompute_on_workers(engine, files, args.unit_seconds))
    elif args.recompute:
        problems.extend(recompute(vectors, digest))
    print_problems(problems)
    how = "recomputed" if args.recompute else "compared with their sources"
    print(f"{len(vectors)} vectors in {len(files)} files {how}: {len(problems)} problem(s)")
    if digest is not None:
        print(f"sha256:{digest.hexdigest()}  the answers of {len(vectors)} vectors")
    return PROBLEMS if problems else SOUND


def diff(args: argparse.Namespace) -> int:
    """Print the differences between two sets of vectors; return 1 if there are any."""
    folder = _vector_folder(args)
    old, new = load_side(args.old, folder), load_side(args.new or str(folder), folder)
    if not old and not new:
        raise Unanswerable("there are no vectors on either side", f"{args.old} and {args.new or folder}", "fill some")
    lines = list(differences(old, new))
    print("\n".join(lines) if lines else f"{len(new)} vectors, no differences")
    return PROBLEMS if lines else SOUND


def _vector_folder(args: argparse.Namespace) -> Path:
    folder: Path = args.vectors or cases.vectors_directory()
    return folder


def _sources(args: argparse.Namespace) -> Mapping[str, Path]:
    sources = default_sources() if args.sources is None else {"": args.sources}
    missing = [folder for folder in sources.values() if not folder.is_dir()]
    if missing or not sources:
        remedy = "run this in a source checkout, or name the folder with --sources"
        raise Unanswerable("the sources of the vectors are not here", " ".join(map(str, missing)), remedy)
    return sources


if __name__ == "__main__":
    sys.exit(do_unit(compute))
