"""The words that all renderings share: the implementation, the claim, its reason, and commands for single cases."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

from tessera_conformance.registry import Registry
from tessera_conformance.reports.causes import OUTCOME_WORDS, Cause, unknown_clauses
from tessera_conformance.reports.claim import (
    JUDGED,
    OUTCOMES,
    Line,
    Outcome,
    claimed_profiles,
    is_whole,
    left_out_by_level,
    missing_musts,
    product_results,
)
from tessera_conformance.reports.journal import Report
from tessera_conformance.session import DEADLINE, START_DEADLINE
from tessera_conformance.terminal import escaped
from tessera_conformance.verdicts import VERDICTS

MOST_NAMED = 4
"""Clauses that the claim names one by one."""

_NOT_PRINTABLE = re.compile(r"[^\x20-\x7e]")


def implementation_name(report: Report) -> str:
    """Name, version and device, as the implementation gave them; its label where it did not start."""
    identity = report.identity
    if not identity:
        return str(report.header["implementation"]["label"])
    device = f" on {identity['device']}" if identity.get("device") else ""
    return f"{identity['name']} {identity['version']}{device}"


def selection(report: Report) -> str:
    """Return profile and level, the seed if one was named, and the shard if only one was run."""
    chosen = report.header["selection"]
    shard = f", shard {chosen['shard']}" if chosen["shard"] else ""
    via = ", by operations" if _by_operations(report) else ""
    seed = f", seed {chosen['seed']}" if chosen.get("seed") else ""
    return f"profile {chosen['profile']}, level {chosen['level']}{via}{seed}{shard}"


def chosen_parts(report: Report) -> list[str]:
    """Return the options that selected cases: `case ir/matmul/*`, `clause LANG-10-05`; only the first of many."""
    chosen = report.header["selection"].get("chosen", {})
    lists = {name: part if isinstance(part, list | tuple) else [part] for name, part in chosen.items()}
    parts = [f"{_PARTS.get(name, name)} {value}" for name, values in lists.items() for value in values]
    further = len(parts) - _SHOWN_PARTS
    return [*parts[:_SHOWN_PARTS], *([f"and {count(further)} more"] if further > 0 else [])]


_SHOWN_PARTS = 8
_PARTS: Mapping[str, str] = {
    "cases": "case",
    "clauses": "clause",
    "features": "feature",
    "failed": "failures of",
    "paths": "path",
    "keyword": "-k",
    "markexpr": "-m",
}
"""The words before a selection, by the option's name in the header."""


def _by_operations(report: Report) -> bool:
    """True if the run judged arithmetic operation by operation, without programs."""
    return bool(report.header["selection"].get("via") == "operations")


def duration(report: Report) -> str:
    """Return the wall seconds of the run if it recorded them, else the time spent in cases."""
    whole = seconds_of(report.footer or {"run": {}})
    if whole is not None:
        return f"{whole:.1f} s"
    return f"{sum(seconds_of(line) or 0.0 for line in report.observed):.1f} s in cases"


def seconds_of(line: Line) -> float | None:
    """Return the seconds that a line has; None if it has none."""
    seconds = line["run"].get("seconds")
    return seconds if isinstance(seconds, int | float) else None


def facts(report: Report) -> list[tuple[str, str]]:
    """Return names and values: the implementation, the run, its start, and the harness."""
    implementation, chosen, run = (report.header[name] for name in ("implementation", "selection", "run"))
    rows = [
        ("--impl", str(implementation["label"])),
        ("images made by", str(implementation.get("compiler") or "")),
        ("profile", chosen["profile"]),
        ("level", chosen["level"]),
        ("selection", chosen["shard"] or ("whole suite" if chosen["complete"] else "part of the suite")),
        ("chosen", ", ".join(chosen_parts(report))),
        ("time", duration(report)),
        ("started", str(run.get("started", "")).replace("T", " ").removesuffix("+00:00")),
        ("harness", report.header["harness"]),
    ]
    return [(key, value) for key, value in rows if value]


def claim_title(report: Report) -> str:
    """Return the claim, and the number of cases that deviations excuse."""
    excused = sum(line["disposition"] in ("known_deviation", "waived") for line in report.observed)
    if not excused or report.claim not in ("success", "partial"):
        return report.claim.upper()
    return f"{report.claim.upper()}, with {cases(excused)} excused by deviations"


def claim_reason(report: Report, registry: Registry) -> str:
    """Return the reason for the claim, in one sentence."""
    if report.claim == "invalid":
        planned = len(report.plan["cases"])
        return f"{report.problem}; {count(len(report.observed))} of {count(planned)} planned cases observed"
    unjudged = _left_out_by_level(report)
    if report.claim == "failure":
        return " and ".join(_failure_reasons(report) or [_nothing_judged(report, registry), *unjudged])
    if report.claim == "partial":
        left_out = [*_unsupported(report), *(["part of the suite was left out"] * report.is_part)]
        left_out += ["programs were left out, since the run went by operations"] * _by_operations(report)
        left_out += [] if report.is_part or _by_operations(report) else _unjudged(report)
        return f"nothing failed, but {' and '.join([*left_out, *unjudged])}{_profiles(report)}"
    return f"no case counts against it{_profiles(report)}"


def _profiles(report: Report) -> str:
    """Return the claimed profiles, if the claimed documents have named ones."""
    if not report.plan["profiles"]:
        return ""
    return f"; profiles {', '.join(claimed_profiles(report.hello, report.plan))}"


def _unsupported(report: Report) -> list[str]:
    """Return the core MUST clauses that the implementation does not support, and the profiles that lack them."""
    counts = report.left_out_profiles
    if not counts:
        return []
    parts = [f"{count(number)} of {f'profile {name}' if name else 'no profile'}" for name, number in counts.items()]
    return [f"{_core_musts(sum(counts.values()))} unsupported ({', '.join(parts)})"]


def _unjudged(report: Report) -> list[str]:
    """Return the core MUST clauses whose main effect no case judged, for another reason."""
    outcomes = report.outcomes
    names = [name for name in missing_musts(report.plan, outcomes) if outcomes[name] != "unsupported"]
    shown = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
    return [f"{_core_musts(len(names))} not judged: {shown}"] if names else []


def _core_musts(number: int) -> str:
    return f"{count(number)} core MUST clause{' is' if number == 1 else 's are'}"


def _failure_reasons(report: Report) -> list[str]:
    failures, problems = len(report.failures), len(report.footer["problems"] if report.footer else [])
    reasons = [f"{cases(failures)} count{'s' if failures == 1 else ''} against it"] if failures else []
    return reasons + ([f"{problems} problem{'' if problems == 1 else 's'} with the run"] if problems else [])


def _left_out_by_level(report: Report) -> list[str]:
    """Return the number of cases that a weaker numerics level leaves out: such a claim is partial."""
    level = report.header["selection"]["level"]
    number = sum(left_out_by_level(line, level) for line in report.observed)
    return [f"{cases(number)} of numerics {'is' if number == 1 else 'are'} not judged at level {level}"] * (number > 0)


def _nothing_judged(report: Report, registry: Registry) -> str:
    """Return the reason for which a run without failures claims nothing."""
    lines = report.observed
    cited = {registry.clauses[name].document for line in lines for name in line["clauses"] if name in registry.clauses}
    bare = [name for name in claimed_documents(report) if name not in cited]
    if bare:
        suite = "the suite has no cases yet" if report.header["selection"]["complete"] else "this run has no cases"
        return f"no case was judged: {suite} for {', '.join(bare)}"
    reasons = Counter(line["reason"] for line in lines).most_common(1)
    return "no case was judged" + "".join(f": {reason} ({cases(number)})" for reason, number in reasons)


def claimed_documents(report: Report) -> list[str]:
    """Return the documents that the implementation says it implements."""
    return [str(name) for name in report.hello.get("documents", [])]


def scope(report: Report) -> list[str]:
    """Return the coverage of testable MUST clauses for each claimed document; missing core clauses first."""
    outcomes = report.outcomes
    missing = missing_musts(report.plan, outcomes)
    musts = report.plan["musts"]
    lines = []
    for document in claimed_documents(report):
        tally = Counter(outcomes[name] for name, must in musts.items() if must["document"] == document)
        unsupported = sum(musts[name]["document"] == document and outcomes[name] == "unsupported" for name in missing)
        first = [f"{_core_musts(unsupported)} unsupported"] if unsupported else []
        if tally:
            lines.append(f"{document}: {'; '.join([*first, _counts_of(tally)])}")
    return lines


def images(report: Report) -> list[str]:
    """Return the compiler of the images if it is another, and the cases that it left unjudged, by reason."""
    compiler = report.header["implementation"].get("compiler")
    if compiler is None:
        return []
    reasons = Counter(line["reason"] for line in report.observed if "--compiler" in line["reason"])
    kinds = Counter(reason.partition(":")[0] for reason in reasons.elements())
    origin = f"made by {'the reference' if compiler == 'reference' else compiler}"
    return [origin, *(f"{cases(number)} inapplicable: {kind}" for kind, number in kinds.most_common())]


def _counts_of(tally: Counter[Outcome]) -> str:
    """Return the counts of a document's testable MUST clauses: judged, passed, unsupported, untested, others."""
    numbers = {"judged": sum(tally[outcome] for outcome in JUDGED), "passed": tally["pass"]}
    numbers |= {outcome: tally[outcome] for outcome in ("unsupported", "untested")}
    others = [outcome for outcome in OUTCOMES if outcome not in ("pass", *numbers) and tally[outcome]]
    numbers |= {OUTCOME_WORDS[outcome]: tally[outcome] for outcome in others}
    parts = ", ".join(f"{count(number)} {word}" for word, number in numbers.items())
    return f"{parts} of {count(tally.total())} testable MUST clauses"


def reason_with_verdict(observation: Line) -> str:
    """Return the reason of an observation in one line, after the verdict unless that is `fail`."""
    if observation["disposition"] == "unexpected_pass":
        return "unexpected pass: a known deviation says that this case must fail"
    verdict = observation["verdict"].replace("_", " ")
    return str(observation["reason"]) if verdict == "fail" else f"{verdict}: {observation['reason']}"


def deviation_reason(report: Report, observation: Line) -> str:
    """Return the entry of the known deviations about a case: reason, owner and expiry."""
    for entry in report.header["selection"]["deviations"]:
        clause = entry.get("clause")
        if fnmatchcase(observation["case"], entry.get("cases", "")) and clause in (None, *observation["clauses"]):
            return f"{entry.get('reason')} (owner {entry.get('owner')}, until {entry.get('expires')})"
    return ""


def reproduce_command(report: Report, case: str) -> str:
    """Return the command that runs just this case again, as it was run."""
    implementation, chosen = report.header["implementation"], report.header["selection"]
    deadlines = {"call": DEADLINE, "start": START_DEADLINE, **chosen.get("deadlines", {})}
    options = [  # name, value, and the value that needs no option
        ("impl", implementation["label"], None),
        ("compiler", implementation.get("compiler"), None),
        ("profile", chosen["profile"], "extended"),
        ("level", chosen["level"], report.hello.get("arithmetic", {}).get("level", "strict")),
        ("via", chosen.get("via", "programs"), "programs"),
        ("seed", chosen.get("seed", 0), 0),
        ("deadline", f"{deadlines['call']:g}", f"{DEADLINE:g}"),
        ("start-deadline", f"{deadlines['start']:g}", f"{START_DEADLINE:g}"),
    ]
    words = [f"--{name}={shlex.quote(str(value))}" for name, value, default in options if value != default]
    return " ".join(["tessera-conformance reproduce", shlex.quote(case), *words])


def problems_of(report: Report, registry: Registry) -> list[str]:
    """Return the faults of the run as a whole; the claim says why a file is no whole report."""
    problems = []
    fault = report.header["implementation"]["fault"]
    if fault is not None:
        socket = str(report.header["implementation"]["label"]).startswith("hostio:")
        answers = "listens there" if socket else "answers session.open"
        problems.append(f"the implementation did not start: {fault}; start it by hand and see that it {answers}")
    unknown = unknown_clauses(report, registry)
    if unknown:
        problems.append(f"made with another clause registry: it cites {', '.join(unknown)}, unknown to this one")
    return problems + list(report.footer["problems"] if report.footer else [])


def mended(cause: Cause, registry: Registry) -> list[str]:
    """Return the first clause of a cause with its summary, and the number of clauses that hold once it is corrected."""
    first = registry.clauses.get(cause.clauses[0]) if cause.clauses else None
    named = [f"{first.id}: {first.summary}"] if first is not None else [*cause.clauses[:1]]
    number = len(cause.mended)
    return named + [f"{count(number)} clause{' holds' if number == 1 else 's hold'} once it is mended"] * (number > 0)


def verdict_counts(report: Report) -> list[tuple[str, str]]:
    """Return each verdict that some case has, with the number of its cases; cases of another reading count apart."""
    reading = "other_reading"
    counts = Counter(reading if line["disposition"] == reading else line["verdict"] for line in report.observed)
    return [(name.replace("_", " "), count(counts[name])) for name in (*VERDICTS, reading) if counts[name]]


@lru_cache(maxsize=1)  # all renderings of a report ask for them
def products(report: Report) -> list[str]:
    """Return the whole products, and those of which at least half the cases pass, with their counts.

    A run of a part of the suite shows no product to be whole.
    """
    complete = report.header["selection"]["complete"]
    results = product_results(report.plan, report.observed)
    whole = [f"{name} ({cases(result.total())})" for name, result in results.items() if complete and is_whole(result)]
    near = [
        f"{name} {'within reach' if complete else 'in this run'}: {_reached(result)}"
        for name, result in results.items()
        if not (complete and is_whole(result)) and 2 * result["passed"] >= result.total() > 0
    ]
    return [*([f"whole: {', '.join(whole)}"] if whole else []), *near]


def _reached(result: Counter[str]) -> str:
    lost = {"fail": result["failed"], "missing": result["missing"]}
    parts = [f"{count(number)} {word}" for word, number in lost.items() if number]
    return ", ".join([f"{count(result['passed'])} of {cases(result.total())} pass", *parts])


def not_judged(report: Report) -> list[str]:
    """Return the commonest reasons why selected cases of claimed features were not judged.

    Such cases presume what the machine lacks, depend on a construct whose control case fails, or do not apply to this
    implementation.
    """
    groups: dict[str, list[str]] = {}
    for line in report.observed:
        if line["cause"] in ("presumption", "blocked"):
            reason = str(line["reason"])
            reason = reason.partition(": ")[0] if line["cause"] == "blocked" else reason
            groups.setdefault(reason.partition("; found ")[0], []).append(reason)
    reasons = sorted(groups.items(), key=lambda group: -len(group[1]))
    parts = [
        f"{cases(len(texts))}: {texts[0] if len(set(texts)) == 1 else shared}"
        for shared, texts in reasons[:_SHOWN_REASONS]
    ]
    further = sum(len(texts) for _, texts in reasons[_SHOWN_REASONS:])
    return [*parts, *([f"{cases(further)} for other reasons"] if further else [])]


def remedies(report: Report) -> list[str]:
    """Return the remedy for cases that need the devices of a C library whose description names none."""
    reasons = [str(line["reason"]) for line in report.observed if line["verdict"] == "unsupported"]
    number = sum(reason.endswith("the feature device-list") for reason in reasons)
    label = str(report.header["implementation"]["label"])
    if not number or not label.startswith("cabi:"):
        return []
    where = label if ",description=" in label else f"{label},description=FILE"
    return [f"{cases(number)} need the devices: write [[devices]] in the description of --impl={where} (docs/cabi.md)"]


_SHOWN_REASONS = 5


def other_readings(report: Report) -> list[tuple[str, str, int]]:
    """Return each interpretation with the listed alternative that cases followed, and the number of the cases."""
    followed = Counter(
        (line["interpretation"], line["reason"].rpartition(f"{line['interpretation']}: ")[2])
        for line in report.observed
        if line["disposition"] == "other_reading"
    )
    return [(name, alternative, number) for (name, alternative), number in sorted(followed.items())]


def start_stderr(report: Report) -> str:
    """Return the standard error of an implementation that did not start; empty for one that did."""
    return str(report.header["run"].get("stderr") or "")


def printable(text: str) -> str:
    """Return a text as one line of printable ASCII, everything else escaped: safe on every terminal."""
    return escaped(_NOT_PRINTABLE, " ".join(text.split()))


def count(number: int) -> str:
    """Return a number with its thousands set apart: 4 118."""
    return f"{number:,}".replace(",", " ")


def cases(number: int) -> str:
    """Return a number of cases."""
    return f"{count(number)} case{'' if number == 1 else 's'}"


def left_out(observation: Line) -> str:
    """Return the checks and exchanges of a passing case that its line omits; empty if it has all."""
    stored = observation.get("evidence")
    if stored is not None:
        kinds = ", ".join(f"{kind} {number}" for kind, number in stored["checks"].items())
        return (
            f"Kept as tally and a digest: checks {kinds}; {stored['exchanges']} exchanges; digest {stored['digest']}. "
            "The command above shows them; a run with --evidence=all keeps them."
        )
    counts = observation.get("left_out")
    if counts is None:
        return ""
    return f"Not shown: {counts['checks']} checks and {counts['exchanges']} exchanges between the first and the last."
