"""The command line `tessera-conformance vectors`: fill, check, diff.

Exit codes: 0 when all is well, 1 when there are problems or differences, 2 when the question cannot be answered.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Mapping
from pathlib import Path

from tessera_conformance import cases
from tessera_conformance.executor.engine import Engine, ExecutorLost, ExecutorUnavailable
from tessera_conformance.options import add_executor
from tessera_conformance.session import Session
from tessera_conformance.terminal import Handler, Subparsers, print_problems, reporting_errors
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import FORMS, locate
from tessera_conformance.vectors import check as checks
from tessera_conformance.vectors import check as on_workers
from tessera_conformance.vectors.building import load_sources
from tessera_conformance.vectors.check import Filled, Freezer, differences, load_side, open_session
from tessera_conformance.vectors.files import Unanswerable, VectorProblem

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
    add_executor(checking.add_argument, on_workers.LEAST_SECONDS)
    diffing = _add(actions, "diff", "show what changed between two sets of vectors", diff)
    diffing.add_argument("old", metavar="OLD", help="a folder, a vector file, or a git revision such as HEAD")
    diffing.add_argument("new", nargs="?", metavar="NEW", help="the same (default: the folder of vectors)")


def default_sources() -> Mapping[str, Path]:
    """The sources of this checkout's vectors, by chapter."""
    return cases.chapter_files("vector_sources")


def _add(actions: Subparsers, name: str, help_text: str, handler: Handler) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=help_text, description=help_text)
    parser.add_argument("--vectors", type=Path, metavar="DIR", help="the frozen vectors (default: this suite's own)")
    parser.add_argument("--sources", type=Path, metavar="DIR", help="their sources (default: this suite's own)")
    parser.set_defaults(handler=reporting_errors(handler, *FORESEEN))
    return parser


def fill(args: argparse.Namespace) -> int:
    """Freeze every topic that is named, or all; a topic with a problem stays as it was."""
    sources, names = _sources(args), tuple(args.names)
    topics = list(load_sources(sources, names))
    if not topics:
        raise Unanswerable("no source is called that", " ".join(names) or "the sources", "see the files of the sources")
    session = Session(locate(args.impl))
    freezer = Freezer(session, _vectors(args), names, args.reason)
    try:
        open_session(session)
        filled = [_announced(freezer.fill(topic)) for topic in topics]
    finally:
        session.close()
    return PROBLEMS if any(topic.problems for topic in filled) else SOUND


def check(args: argparse.Namespace) -> int:
    """Print everything that is wrong with the frozen vectors."""
    folder, sources = _vectors(args), _sources(args)
    if args.executor and not args.recompute:
        raise Unanswerable("there is nothing to spread", "--executor", "ask for --recompute, which takes long")
    if args.digest and (args.executor or not args.recompute):
        raise Unanswerable("no answers are computed here", "--digest", "ask for --recompute, without --executor")
    if not folder.is_dir():
        raise Unanswerable("there is no such folder", str(folder), "name the folder of vectors with --vectors")
    digest = hashlib.sha256() if args.digest else None
    problems = list(checks.integrity(folder))
    files = checks.read_all(folder, problems)
    vectors = [vector for file in files for vector in file.vectors]
    problems.extend(checks.in_step(files, load_sources(sources)))
    if args.recompute and args.executor:
        settings = on_workers.settings_of(args.vectors, folder, files)
        with Engine(args.executor, on_workers.MODULE, settings) as engine:
            problems.extend(on_workers.recompute_on_workers(engine, files, args.unit_seconds))
    elif args.recompute:
        problems.extend(checks.recompute(vectors, digest))
    print_problems(problems)
    how = "recomputed" if args.recompute else "compared with their sources"
    print(f"{len(vectors)} vectors in {len(files)} files {how}: {len(problems)} problem(s)")
    if digest is not None:
        print(f"sha256:{digest.hexdigest()}  the answers of {len(vectors)} vectors")
    return PROBLEMS if problems else SOUND


def diff(args: argparse.Namespace) -> int:
    """Print the differences between two sets of vectors; 1 when there are any."""
    folder = _vectors(args)
    old, new = load_side(args.old, folder), load_side(args.new or str(folder), folder)
    if not old and not new:
        raise Unanswerable("there are no vectors on either side", f"{args.old} and {args.new or folder}", "fill some")
    lines = list(differences(old, new))
    print("\n".join(lines) if lines else f"{len(new)} vectors, no differences")
    return PROBLEMS if lines else SOUND


def _announced(filled: Filled) -> Filled:
    print_problems(filled.problems)
    if filled.problems:
        print(f"{filled.topic}: {len(filled.problems)} problem(s), nothing written")
    else:
        print(f"{filled.topic}: {filled.vectors} vectors, {', '.join(filled.changed) or 'unchanged'}")
    return filled


def _vectors(args: argparse.Namespace) -> Path:
    folder: Path = args.vectors or cases.vectors_directory()
    return folder


def _sources(args: argparse.Namespace) -> Mapping[str, Path]:
    sources = default_sources() if args.sources is None else {"": args.sources}
    missing = [folder for folder in sources.values() if not folder.is_dir()]
    if missing or not sources:
        remedy = "run this in a source checkout, or name the folder with --sources"
        raise Unanswerable("the sources of the vectors are not here", " ".join(map(str, missing)), remedy)
    return sources
