"""A finding as text for the terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tessera_conformance.arithmetic.model import NodeArithmetic
from tessera_conformance.probe.pattern import abbreviated
from tessera_conformance.probe.run import Finding

LONGEST_WITNESS = 400


def as_text(finding: Finding) -> str:
    """What a probe found, line by line."""
    subject = finding.subject
    element = f", element {list(subject.watched)}" if subject.watched else ""
    lines = [f"{finding.implementation}: {subject} -> {subject.result_dtype}{element}"]
    lines += [f"  {name:<12}{value}" for name, value in _facts(finding)]
    return "\n".join(lines) + "\n"


def as_markdown(finding: Finding, drawing: str | None) -> str:
    """A section about one finding; `drawing` is the name of its SVG file."""
    lines = [f"### {finding.subject}", ""]
    lines += [f"- **{name}**: {_code(name, value)}" for name, value in _facts(finding) if name != "time"]
    if drawing is not None:
        lines += ["", f"![the order of {finding.subject}]({drawing})"]
    return "\n".join([*lines, ""])


def as_json(finding: Finding) -> str:
    """The machine-readable finding."""
    return json.dumps(finding.to_json(), indent=1) + "\n"


def model_sentence(model: NodeArithmetic, products: bool) -> str:
    """A node arithmetic in words."""
    parts = [f"{model.accumulator} accumulator", f"rounding {model.rounding.replace('_', ' ')}"]
    parts += [f"products {model.product}"] if products else []
    parts += [f"fused nodes keep {model.alignment_bits} bits"] if model.alignment_bits is not None else []
    return ", ".join([*parts, f"subnormals {model.subnormals}"])


def _facts(finding: Finding) -> Iterator[tuple[str, str]]:
    if finding.kind != "no fixed tree" or finding.tree is not None:
        yield "order", finding.pattern if finding.evidence is None else f"the masks show {finding.pattern}"
    if finding.tree is not None:
        yield "tree", abbreviated(finding.tree)
    products = finding.subject.operation == "matmul"
    if finding.arithmetic is not None:
        yield "arithmetic", model_sentence(finding.arithmetic.model, products)
        if finding.arithmetic.alike:
            others = "; ".join(_apart(finding.arithmetic.model, other) for other in finding.arithmetic.alike[:4])
            yield "or", f"{others} (no input tried tells these apart)"
    if finding.seen is not None and finding.seen.start is not None:
        begins = {"+0": "a sum of negative zeros is +0", "none": "a sum of negative zeros is -0"}
        yield "start", begins[finding.seen.start]
    if finding.seen is not None and finding.seen.subnormals == "mixed":
        yield "subnormals", "some are flushed and some are not"
    if finding.others is not None:
        yield "elsewhere", finding.others.sentence()
    if finding.evidence is not None:
        yield "no tree", f"{finding.evidence}{_witness(finding.evidence.witness)}"
    for group in finding.groups if len(finding.groups) > 1 else ():
        yield "chunk", group.sentence()
    if not finding.ranks_agree:
        yield "ranks", "the ranks got different bits"
    yield from _judged(finding)
    yield "calls", str(finding.calls)
    yield "time", f"{finding.seconds:.3f} s"


def _judged(finding: Finding) -> Iterator[tuple[str, str]]:
    if finding.declared is None:
        yield "verdict", "nothing declared"
        return
    declared = finding.declared
    if finding.verdict == "agrees":
        blind = finding.kind == "exact sum" and finding.tree != declared.tree.without_start().canonical()
        remark = "; no input tells the orders apart" if blind else ""
        yield "verdict", f"agrees with the declaration ({declared.source}){remark}"
        return
    yield "declared", f"{abbreviated(declared.tree)} ({declared.source})"
    for departure in finding.departures:
        yield "differs", f"{departure.aspect}: {departure.sentence}{_witness(departure.witness)}"
    yield "verdict", "differs from the declaration"


def _apart(model: NodeArithmetic, other: NodeArithmetic) -> str:
    mine, others = model.to_json(), other.to_json()
    return ", ".join(f"{key.replace('_', ' ')} {others[key]}" for key in mine if mine[key] != others[key])


def _witness(witness: Mapping[str, Any]) -> str:
    shown = {key: value for key, value in witness.items() if key in ("replayed", "found", "declared", "first", "again")}
    inputs = witness.get("inputs")
    parts = [f"{key} {value}" for key, value in shown.items()]
    if isinstance(inputs, Mapping):
        parts += [f"{name} {_cut(' '.join(words))}" for name, words in inputs.items()]
    return f" [{'; '.join(parts)}]" if parts else ""


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_WITNESS else f"{text[:LONGEST_WITNESS]} ..."


def _code(name: str, value: str) -> str:
    return f"`{value}`" if name == "tree" else value
