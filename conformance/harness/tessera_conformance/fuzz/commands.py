"""The command line `tessera-conformance fuzz`: generated programs against one implementation.

Exit codes: 0 where everything was answered as it must be; 1 where something was found, or nothing was judged; 2 where
the question cannot be asked.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tessera_conformance.cases import parse_shard
from tessera_conformance.fuzz.run import Finding, MalformedFinding, Outcome, Plan, load, run, save, tried
from tessera_conformance.fuzz.statements import FEATURES
from tessera_conformance.fuzz.trials import KINDS, Tally, Trial
from tessera_conformance.observations import Fault
from tessera_conformance.protocol import Hello
from tessera_conformance.session import Session
from tessera_conformance.terminal.errors import reporting_errors
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import FORMS, locate

ABOUT = """Generate legal, illegal and mutated programs and judge the answers of an implementation: never a crash or a
hang, legal programs accepted, illegal ones refused, two texts of one meaning answered alike. Trial I of seed S is the
same program everywhere."""


class CannotFuzz(Exception):
    """The implementation did not start."""


def configure_fuzz(parser: argparse.ArgumentParser) -> None:
    """The command `fuzz`."""
    parser.description = ABOUT
    parser.add_argument("--impl", default="reference", metavar="IMPL", help=FORMS)
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="trials (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="default: 0")
    parser.add_argument(
        "--shard", type=_shard, default=(1, 1), metavar="K/N", help="every N-th trial, from the K-th on"
    )
    parser.add_argument("--only", action="append", choices=KINDS, help="this kind of trial; may be repeated")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write every finding there")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="try a saved finding again")
    parser.add_argument("--show", type=int, metavar="I", help="print trial I instead of running")
    parser.add_argument("--deadline", type=float, default=10.0, metavar="SECONDS", help="for each call (default: 10)")
    parser.set_defaults(handler=reporting_errors(command, CannotFuzz, ImplementationUnavailable, MalformedFinding))


def command(arguments: argparse.Namespace) -> int:
    """Run, replay or show."""
    session = Session(locate(arguments.impl), arguments.deadline)
    try:
        hello = session.open()
        if isinstance(hello, Fault):
            raise CannotFuzz(f"{arguments.impl} does not start: {hello.detail}")
        if arguments.replay:
            return replay(session, load(arguments.replay))
        plan = Plan(arguments.seed, arguments.count, arguments.shard, claimed(hello), tuple(arguments.only or KINDS))
        if arguments.show is not None:
            trial, _ = plan.trial(arguments.show)
            print(shown(trial))
            return 0
        return fuzz(session, plan, arguments.save)
    finally:
        session.close()


def claimed(hello: Hello) -> tuple[str, ...]:
    """The features that an implementation claims, as far as the generator knows them."""
    return tuple(each for each in FEATURES if hello.has(each))


def fuzz(session: Session, plan: Plan, folder: Path | None) -> int:
    """Make the trials, print and save every finding, and sum up."""

    def report(finding: Finding) -> None:
        print(finding.title)
        if folder is not None:
            print(f"  saved: {save(finding, folder)}")
        print("\n".join(f"  | {line}" for line in shown(finding.minimal).splitlines()), flush=True)

    started = time.perf_counter()
    outcome = run(session, plan, report)
    sys.stdout.write(summary(outcome, time.perf_counter() - started))
    if not outcome.tally.judged:
        print("nothing was judged: every answer was `unsupported`")
        return 1
    return 1 if outcome.problems else 0


def summary(outcome: Outcome, seconds: float) -> str:
    """Return the trials, answers and findings in lines of text."""
    count = sum(outcome.trials.values())
    lines = [
        f"{count} trials in {seconds:.1f} s, {count / max(seconds, 1e-9):.0f} a second: "
        + ", ".join(f"{outcome.trials[kind]} {kind}" for kind in KINDS)
    ]
    lines += [f"  {each:24} {number}" for each, number in sorted(outcome.tally.answers.items())]
    if outcome.tally.unsupported:
        lines.append("unsupported:")
        lines += [f"  {feature:40} {number}" for feature, number in outcome.tally.unsupported.most_common(20)]
    lines.append(f"{sum(outcome.problems.values())} findings of {len(outcome.problems)} sorts")
    lines += [f"  {number:6} {signature}" for signature, number in outcome.problems.most_common()]
    return "\n".join(lines) + "\n"


def replay(session: Session, finding: Finding) -> int:
    """Try a finding again, whole and reduced; 0 where the problem is gone from both."""
    found = False
    for name, trial in (("whole", finding.trial), ("reduced", finding.minimal)):
        problem = tried(session, trial, Tally())
        found = found or problem is not None
        print(f"{name}: {'nothing found' if problem is None else f'{problem.name}: {problem.detail}'}")
    print("\n".join(f"  | {line}" for line in shown(finding.minimal).splitlines()))
    return 1 if found else 0


def shown(trial: Trial) -> str:
    """A trial for people: its texts, and what is executed."""
    parts = [f"// {trial.kind}: {trial.what}", trial.subject.source]
    if trial.subject.function:
        inputs = [
            f"{name}: {each.dtype}{list(each.shape)} {each.bits()[:48]}" for name, each in trial.subject.inputs.items()
        ]
        parts.append(f"// execute {trial.subject.function}({', '.join(inputs)})")
    if trial.twin is not None:
        parts += ["// twin", trial.twin.source]
    return "\n".join(parts)


def _shard(text: str) -> tuple[int, int]:
    try:
        return parse_shard(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
