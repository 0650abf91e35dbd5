"""Every member of every request, spoilt by each keyword that its published schema has (D3, D5 to D7).

The cases are made from `schemas/host_io.schema.json`; their clauses are those that the schema names. Each wrong request
stands beside a sound one in the same exchange. Members that must agree with one another are in `test_agreement.py`, ids
that cannot be read in `test_envelope.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pytest

from tessera_conformance.chapters.abi.host_io.kit.exchange import Reading, connected
from tessera_conformance.chapters.abi.host_io.kit.members import (
    ENVELOPE,
    IDS,
    UNLISTED,
    Member,
    members,
    sound,
    wrong,
)
from tessera_conformance.chapters.abi.host_io.kit.messages import ABSENT, changed
from tessera_conformance.marks import clause

MEMBERS = [member for member in members() if member.name not in IDS]

JUDGED = ("type", "enum", "const", "minimum", "maximum", "minItems", "items")
LEFT_OUT = {
    "minLength": "refusal of an empty identifier is not asserted (AMB-HIO-39)",
    "maxLength": "refusal of a longer identifier or label is not asserted (AMB-HIO-39, AMB-HIO-68)",
    "maxItems": "refusal of more arguments is not asserted (AMB-HIO-68)",
    "allOf": "members that have to agree are judged in `test_agreement.py`",
    "additionalProperties": "members that are not named are judged where they are planted (AMB-HIO-15, AMB-HIO-21)",
    "default": "accepted values are judged below",
    "properties": "a part has cases of its own",
    "required": "a part has cases of its own",
    "if": "a part has cases of its own",
    "then": "a part has cases of its own",
}
"""Keywords of which no case is made. Beside them, no case has a whole number that is written with a fraction
(AMB-HIO-33), a number as `deploy_pa` of a builtin (AMB-HIO-40), a pattern beside `host_buffer_ref` (AMB-HIO-41), a
value of another type beside `zero` (AMB-HIO-37), a number past the largest fp16 or fp32 (AMB-HIO-36), a place of
another SIP than the target device's (AMB-HIO-45), more than 1,024 characters in `grid` or `meta` (AMB-HIO-43)."""
ANNOTATIONS = ("title", "description", "$ref", "x-clauses", "x-other-members", "x-other-values")


def clauses_of(member: Member, keyword: str) -> Iterator[str]:
    """The clauses that a case judges."""
    yield member.clause
    if keyword == "required":
        yield "HIO-Verification-01"
        if member.name in ("msg_type", "target_device"):
            yield ENVELOPE[member.part]
    if keyword in ("enum", "const"):
        yield UNLISTED[member.name]


def keywords_of(member: Member) -> list[str]:
    """The keywords of which cases are made. Raises `ValueError` for one that is neither judged nor left out."""
    if unknown := sorted({*member.schema} - {*JUDGED, *LEFT_OUT, *ANNOTATIONS}):
        raise ValueError(f"{member.part}.{member.name}: no case and no reason for {unknown}")
    return [keyword for keyword in JUDGED if keyword in member.schema]


def case(member: Member, keyword: str) -> Any:
    """The parameters of a case."""
    marks = clause(*dict.fromkeys(clauses_of(member, keyword)))
    return pytest.param(member, keyword, marks=marks, id=f"{member.part}-{member.name}-{keyword}")


@pytest.mark.parametrize(("member", "keyword"), [case(member, "required") for member in MEMBERS if member.required])
def test_a_request_without_a_mandatory_member_is_refused(impl, check, member, keyword):
    """The member is left out, or null, which is the same (AMB-HIO-18, AMB-HIO-19, AMB-HIO-31)."""
    host = connected(impl, check)
    message = sound(host, member.part)
    host.refused(wrong(member, keyword, message), message)


@pytest.mark.parametrize(
    ("member", "keyword"), [case(member, keyword) for member in MEMBERS for keyword in keywords_of(member)]
)
def test_a_member_that_is_not_of_its_form_is_refused(impl, check, member, keyword):
    """Values of another type, range or list are refused (AMB-HIO-06, -08, -13, -14, -20, -31, -34, -37)."""
    host = connected(impl, check)
    message = sound(host, member.part)
    mistakes = wrong(member, keyword, message)
    host.refused(mistakes, message, *readings_of(member, keyword, mistakes))


def types_of(member: Member) -> Sequence[str]:
    """The types that the schema gives a member."""
    types = member.schema.get("type", ())
    return [types] if isinstance(types, str) else types


def readings_of(member: Member, keyword: str, mistakes: Collection[str]) -> Iterator[Reading]:
    """The listed alternatives that take some of the mistakes."""
    booleans = [f"{member.name} is True", f"{member.name} is False"]
    match keyword:
        case "type" if {"integer", "number"} & set(types_of(member)):
            yield Reading("AMB-HIO-14", "true and false count as numbers", booleans)
        case "minimum" if member.schema["minimum"] == 1:
            yield Reading("AMB-HIO-20", "zero bytes complete at once", [f"{member.name} just below the least"])
        case "maximum":
            yield Reading("AMB-HIO-34", "no bounds", mistakes, whole=True)
        case "minItems":
            yield Reading("AMB-HIO-08", "an empty list is accepted", mistakes)
    if keyword in ("type", "enum") and not member.required:
        others = [name for name in mistakes if keyword == "type" or not name.endswith("'")]
        yield Reading("AMB-HIO-37", "wrong types ignored", others, whole=True)


OPTIONAL = {
    "timestamp_tag": ("HIO-D3-08", ["", "now", "2026-11-23T17:00:00Z", '\u23f1 \u00e9\n\t"\\\\', "9" * 1000]),
    "dst_mem_kind": ("HIO-D5-22", ["AUTO"]),
    "dst_kind": ("HIO-D6-08", ["host_sink", "discard"]),
    "grid": ("HIO-D7-28", [{}, {"x": 3, "y": 5, "z": 7}, {"": [1.5, None, {"deep": [True]}]}, {"x": "y" * 1000}]),
    "meta": ("HIO-D7-29", [{}, {"grid": {"x": 1}}, {"\u00e9": None, "none": [], "list": [[-1]]}, {"x": "y" * 1000}]),
    "failure_policy": ("HIO-D7-30", ["fail_fast", "collect_all"]),
    "memory_write debug_label": ("HIO-D5-24", ["", "label", '\u00e9 \u6f22\n"\\\\', "x" * 1000]),
    "memory_read debug_label": ("HIO-D6-10", ["", "label", '\u00e9 \u6f22\n"\\\\', "x" * 1000]),
    "kernel_launch debug_label": ("HIO-D7-32", ["", "label", '\u00e9 \u6f22\n"\\\\', "x" * 1000]),
}
"""The clause of each optional member, and some values; `grid` and `meta` are opaque (AMB-HIO-23, AMB-HIO-43)."""


def permissions() -> list[Any]:
    """A case for each optional member; those that another member may demand are in `test_agreement.py`."""
    rows = [(member, OPTIONAL.get(member.name) or OPTIONAL.get(f"{member.part} {member.name}")) for member in MEMBERS]
    return [
        pytest.param(member, row[1], marks=clause(row[0]), id=f"{member.part}-{member.name}")
        for member, row in rows
        if row and not member.required
    ]


NEVER_NULL = ("dst_mem_kind", "dst_kind", "failure_policy")
"""Optional members to whose type the document does not add None."""


@pytest.mark.parametrize(("member", "values"), permissions())
def test_an_optional_member_may_be_left_out_null_or_given(impl, check, member, values):
    """Null is the same as absent (AMB-HIO-01, AMB-HIO-37)."""
    host = connected(impl, check)
    message = sound(host, member.part)
    sent = [host.another(changed(message, member.path, value)) for value in (ABSENT, None, *values)]
    absent, null, *stated = [completion["ok"] for completion in host.completions(*sent)]
    named = [host.another(changed(message, member.path, dict.fromkeys("xyz", 1)))] if member.name == "grid" else []
    by_axes = bool(named) and host.completions(*named)[0]["ok"]
    check.reading("AMB-HIO-23", "x, y, z", by_axes and not all(stated))
    check.equal(stated, [True] * len(stated), f"success of a request, whatever {member.name} is")
    check.reading("AMB-HIO-37", "null refused", absent and not null and member.name in NEVER_NULL)
    check.equal([absent, null], [True, True], f"success of a request without {member.name}, and with null")


PLANTED = {
    "HIO-D5-25": ("memory_write", ["data", "bytes", "payload", "buffer", "tensor_data"]),
    "HIO-D5-25 pattern": ("pattern", ["data", "values", "bytes"]),
    "HIO-D7-14": ("kernel_ref", ["source", "source_code", "kernel_source", "code"]),
    "HIO-D7-15": ("kernel_ref", ["ir", "mlir", "llvm_ir", "module", "graph_ir"]),
    "HIO-D7-14 launch": ("kernel_launch", ["source", "source_code", "kernel_source", "code"]),
    "HIO-D7-15 launch": ("kernel_launch", ["ir", "mlir", "llvm_ir", "module", "graph_ir"]),
    "HIO-D7-33": ("kernel_launch", ["data", "bytes", "payload", "tensor_data", "tensors"]),
    "HIO-D7-33 tensor": ("tensor_argument", ["data", "bytes", "values"]),
    "HIO-D7-33 map": ("tensor_pa_map", ["data", "bytes", "values"]),
    "HIO-D7-33 shard": ("tensor_shard", ["data", "bytes", "values"]),
    "HIO-D7-33 scalar": ("scalar_argument", ["data", "bytes", "values"]),
}
"""Members with bulk data, source or IR, planted into a part (AMB-HIO-21); of others nothing is said (AMB-HIO-15)."""
BULK = ["00ff" * 8, [0, 255, 7], {"base64": "AP8H"}, "kernel nothing() { }"]
"""Bulk data in four forms: bytes as text, numbers, an object, a source."""


@pytest.mark.parametrize(
    ("part", "names"), [pytest.param(*row, marks=clause(name.split()[0]), id=name) for name, row in PLANTED.items()]
)
def test_a_planted_member_is_refused(impl, check, part, names):
    """A request embeds no tensor contents, no source and no IR (AMB-HIO-21)."""
    host = connected(impl, check)
    message = sound(host, part)
    within = next(member.path[:-1] for member in MEMBERS if member.part == part)
    planted = {f"{name} is {value!r}": changed(message, (*within, name), value) for name in names for value in BULK}
    host.refused(
        planted, message, Reading("AMB-HIO-21", "a receiver passes over what it does not know", planted, whole=True)
    )
