"""Packages with missing or wrong contents, and loaders that accept what they should refuse (WSP 7 and 7.2)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.adapter.wsp import WspMethods
from tessera_reference.wsp import kernels
from tessera_reference.wsp import package as parts
from tessera_reference.wsp.errors import PackageRefused, ProgramRefused
from tessera_reference.wsp.package import Channel, Package, canonical_bytes, content_hash
from tessera_reference.wsp.targets import Target, target

from ....ir.violators.changes import changed
from .answers import Answer, answered, asked
from .changes import defaulting

Document = dict[str, Any]
usual_load = parts._document
usual_package = parts._package


def packaged(
    clause: str, name: str, description: str, change: Callable[[Document], Any], seal: bool = True
) -> Violation:
    """Return a violation whose packages have a document changed in place, with a new hash."""

    def rewrite(answer: Answer) -> None:
        document = json.loads(answer["package"])
        change(document)
        if seal and "hash" in document:
            document["hash"] = content_hash(document)
        answer["package"] = canonical_bytes(document).decode()

    return answered(clause, name, description, rewrite, "compile")


def each_of(*path: str, drop: str = "", **others: Any) -> Callable[[Document], None]:
    """Return a change of every entry of a table: one member removed, or others set."""

    def change(document: Document) -> None:
        table: Any = document
        for step in path:
            table = table[step]
        for entry in table:
            entry.pop(drop, None)
            entry.update(others)

    return change


def within(*path: str, drop: str = "", **others: Any) -> Callable[[Document], None]:
    """Return a change of one part: one member removed, or others set."""

    def change(document: Document) -> None:
        part: Any = document
        for step in path:
            part = part[step]
        part.pop(drop, None)
        part.update(others)

    return change


def capabilities_of_one_target(document: Document) -> None:
    if document["target"] != "cpu_sim":
        document["schedule"]["capabilities"] = {}


IDS = count(1)


def numbered_by_build(document: Document) -> None:
    document["name"] = f"{document['name']}-{next(IDS)}"


def slots_by_build(document: Document) -> None:
    if next(IDS) % 2 and len(document["slots"]) > 1:
        document["slots"][0]["name"], document["slots"][1]["name"] = (
            document["slots"][1]["name"],
            document["slots"][0]["name"],
        )


CONTENTS = [
    packaged("WSP-07.2-15", "another_key", "another key of the ABI version",
        lambda given: given.update(abi_version=given.pop("wsp_runtime_abi"))),
    packaged("WSP-07.2-01", "one_kernel_id", "kernels of one id", each_of("kernels", id=0)),
    packaged("WSP-07.2-02", "one_executor", "every kernel is one of vectors", each_of("kernels", executor="vector")),
    packaged("WSP-07.2-17", "one_entry", "kernels of one entry symbol", each_of("kernels", entry="main")),
    packaged("WSP-07.2-04", "one_policy_id", "one id for all", within("schedule", "policy", id="round_robin")),
    packaged("WSP-07.2-18", "one_worker", "workers are left out",
        within("schedule", "policy", parameters={"workers": 4, "worker": {"constant": 0}})),
    packaged("WSP-07.2-05", "usual_window", "the usual task window", within("schedule", "task_window", size=64)),
    packaged("WSP-07.2-06", "one_target", "only cpu_sim declares anything", capabilities_of_one_target),
    packaged("WSP-07.2-07", "one_channel_id", "channels of one id", each_of("csp", "channels", id=0)),
    packaged("WSP-07.2-08", "one_capacity", "channels of one capacity", each_of("csp", "channels", capacity=1)),
    packaged("WSP-07.2-09", "zero_latency", "channels of no latency", each_of("csp", "channels", latency=0)),
    packaged("WSP-07.2-10", "no_slots", "slots are not listed", within(slots=[])),
    packaged("WSP-07.2-12", "fixed", "symbols are never updated", each_of("symbols", update="never")),
    packaged("WSP-07.2-01", "numbered_builds", "every build is another package", numbered_by_build),
    packaged("WSP-07.2-10", "slots_by_build", "ids of slots turn with builds", slots_by_build),
    packaged("WSP-07.2-14", "constant_hash", "one hash", within(hash="sha256:" + "0" * 64), seal=False),
]  # fmt: skip


DEFAULTS = [
    changed("WSP-07.2-19", "two_tokens", "channels have two places by default", defaulting(Channel, capacity=2)),
    changed("WSP-07.2-20", "one_cycle", "channels have a latency by default", defaulting(Channel, latency=1)),
]


# Updates between runs


LAST: dict[str, Any] = {}


def sticky(given: Answer) -> Answer:
    LAST.update(given.get("symbols") or {})
    known = {symbol["name"] for symbol in json.loads(given["package"]).get("symbols", [])}
    return {**given, "symbols": {name: value for name, value in LAST.items() if name in known}}


def any_width(given: Answer) -> Answer:
    try:
        widths = {symbol["name"]: symbol["width"] for symbol in json.loads(given["package"])["symbols"]}
    except (ValueError, KeyError, TypeError):
        return given
    symbols = {
        name: str(int(value) % (1 << widths.get(name, 64))) for name, value in (given.get("symbols") or {}).items()
    }
    return {**given, "symbols": symbols}


def sticky_where_refused(adapter: WspMethods, method: str, package: str, symbols: Any, *others: Any) -> Any:
    kept, LAST["refused"] = LAST.get("refused", {}), {}
    try:
        return PREPARED(adapter, method, package, symbols or kept, *others)
    except Refusal:
        LAST["refused"] = {"first": symbols["first"]} if "first" in (symbols or {}) else {}
        raise


def stepping_another(adapter: WspMethods, *, run: int, instants: int) -> Answer:
    if run not in adapter._runs and adapter._runs:
        STEP(adapter, run=max(adapter._runs), instants=instants)
    return STEP(adapter, run=run, instants=instants)


PREPARED, STEP = WspMethods._prepared, WspMethods.wsp_step

UPDATES = [
    changed("WSP-07.2-13", "sticky_where_refused", "symbols of a refused run stay",
            ("adapter.ReferenceAdapter._prepared", sticky_where_refused)),
    changed("WSP-03.4.2-06", "steps_the_newest", "steps the newest run for one that there is not, and refuses",
            ("adapter.ReferenceAdapter.wsp_step", stepping_another)),
    asked("WSP-07.2-13", "no_update", "symbols keep their defaults",
        lambda given: {name: value for name, value in given.items() if name != "symbols"}, "run"),
    asked("WSP-07.2-11", "truncated_symbols", "a symbol that is too wide loses bits", any_width, "run"),
]  # fmt: skip


# Loading


def loading(clause: str, name: str, description: str, document: Callable[[bytes], Mapping[str, Any]]) -> Violation:
    """Return a violation that reads the document of a package differently."""
    return changed(clause, name, description, ("wsp.package._document", document))


def accepting(*codes: str) -> Callable[[bytes], Mapping[str, Any]]:
    def read(data: bytes) -> Mapping[str, Any]:
        try:
            return usual_load(data)
        except PackageRefused as problem:
            if problem.code not in codes:
                raise
        return dict(json.loads(data))

    return read


def abi_like(fits: Callable[[Any], bool]) -> Callable[[bytes], Mapping[str, Any]]:
    """Return a loader with another comparison of the ABI version."""

    def read(data: bytes) -> Mapping[str, Any]:
        try:
            return usual_load(data)
        except PackageRefused as problem:
            if problem.code != "UNKNOWN_ABI":
                raise
            found = json.loads(data)
            if not isinstance(found, dict) or not fits(found.get("wsp_runtime_abi")):
                raise
        found["wsp_runtime_abi"] = parts.ABI
        return dict(found)

    return read


def silent(data: bytes) -> Mapping[str, Any]:
    try:
        return usual_load(data)
    except PackageRefused as problem:
        if problem.code == "UNKNOWN_ABI":
            raise PackageRefused("UNKNOWN_ABI", "of another version") from None
        raise


def filled_up(data: bytes) -> Mapping[str, Any]:
    try:
        return usual_load(data)
    except PackageRefused as problem:
        if problem.code != "MISSING_PAYLOAD":
            raise
    found = json.loads(data)
    empty = {"kernels": [], "slots": [], "symbols": [], "tensors": [], "csp": {"channels": [], "processes": []}}
    return {"target": "cpu_sim", "format": 1, "hash": "", "schedule": {}} | empty | found


def is_text(version: Any) -> bool:
    """True if the version is a text."""
    return isinstance(version, str)


LOADERS = [
    loading("WSP-07-01", "no_abi", "a package without a version is loaded", abi_like(lambda found: found is None)),
    loading("WSP-07.2-14", "abi_prefix", "versions that begin as this one are loaded",
        abi_like(lambda found: is_text(found) and found.startswith("v10.0"))),
    loading("WSP-07.2-14", "prefix_of_abi", "versions with which this one begins are loaded",
        abi_like(lambda found: is_text(found) and "v10.0".startswith(found))),
    loading("WSP-07.2-14", "abi_any_case", "case does not count in versions",
        abi_like(lambda found: is_text(found) and found.lower() == "v10.0")),
    loading("WSP-07.2-14", "abi_stripped", "blanks do not count in versions",
        abi_like(lambda found: is_text(found) and found.strip() == "v10.0")),
    loading("WSP-07-01", "newer_abi", "newer versions are loaded", abi_like(lambda found: found == "v11.0")),
    loading("WSP-07-01", "minor_abi", "other minor versions are loaded", abi_like(lambda found: found == "v10.1")),
    loading("WSP-07.2-14", "altered_accepted", "an altered package is loaded", accepting("ALTERED")),
    loading("WSP-07.2-14", "line_feed_added", "the line feed at the end may lack",
        lambda data: usual_load(data if data.endswith(b"\n") else data + b"\n")),
    loading("WSP-07.2-10", "missing_is_empty", "a missing payload is an empty one", filled_up),
]  # fmt: skip


def unread(clause: str, name: str, description: str, path: str, value: Any) -> Violation:
    """Return a violation whose loader accepts any value at a path of a package and reads it as `value`."""

    def read(stated: Mapping[str, Any]) -> Any:
        try:
            return usual_package(stated)
        except ProgramRefused as problem:
            if not problem.path.startswith(path):
                raise
        *steps, last = [int(word) if word.isdigit() else word for word in path.strip("/").split("/")]
        found = json.loads(json.dumps(stated))
        target: Any = found
        for step in steps:
            target = target[step]
        target[last] = value
        return usual_package(found)

    return changed(clause, name, description, ("wsp.package._package", read))


LENIENT = [
    unread("WSP-07.2-02", "any_executor", "any executor is loaded", "/kernels/0/executor", "vector"),
    unread("WSP-07.2-17", "any_entry", "any entry is loaded", "/kernels/0/entry", "main"),
    unread("WSP-07.2-01", "any_kernel_id", "any id of a kernel is loaded", "/kernels/1/id", 1),
    unread("WSP-07.2-04", "any_policy", "any policy is loaded", "/schedule/policy/id", "affinity"),
    unread("WSP-07.2-18", "any_workers", "any number of workers is loaded", "/schedule/policy/parameters",
        {"workers": 1}),
    unread("WSP-07.2-05", "any_window", "any window is loaded", "/schedule/task_window/size", 64),
    unread("WSP-07.2-06", "any_state", "any state is loaded", "/schedule/capabilities/prefetch", "diagnosed"),
    unread("WSP-07.2-07", "any_channel_id", "any id of a channel is loaded", "/csp/channels/1/id", 1),
    unread("WSP-07.2-08", "any_capacity", "any capacity is loaded", "/csp/channels/0/capacity", 1),
    unread("WSP-07.2-09", "any_latency", "any latency is loaded", "/csp/channels/0/latency", 0),
    unread("WSP-07.2-10", "any_symbol_id", "any id of a symbol is loaded", "/symbols/0/id", 0),
    unread("WSP-07.2-11", "any_slot_width", "any width of a slot is loaded", "/slots/0/width", 64),
    unread("WSP-07.2-12", "any_update", "any update protocol is loaded", "/symbols/0/update", "between-runs"),
]  # fmt: skip


def honest(package: Package) -> None:
    """Do not compare a package with its target."""


def of_a_state(owner: Target, path: str, directive: str, state: str) -> None:
    """Accept every declared state."""


def in_either_phase(package: Package) -> None:
    owner = target(package.target)
    usual_check(package if owner is None else replace(package, phase=owner.phase))


usual_check = parts._check_target
TARGETS = [
    changed("WSP-07.2-14", "any_target", "packages for unknown targets are loaded",
        ("wsp.package._check_target", honest)),
    changed("WSP-07.1-03", "any_claim", "a package may claim to enforce anything",
        ("wsp.package._check_state", of_a_state)),
    changed("WSP-07.1-09", "either_phase", "any phase is loaded", ("wsp.package._check_target", in_either_phase)),
]  # fmt: skip


BUILT: dict[str, list[Any]] = {}


def built(self: ReferenceAdapter, **arguments: Any) -> Answer:
    answer: Answer = usual_compile(self, **arguments)
    document = json.loads(answer["package"])
    BUILT[document["name"]] = document["kernels"]
    return answer


def runs_what_was_built(self: ReferenceAdapter, *, package: str, **arguments: Any) -> Answer:
    self.wsp_load(package=package)
    document = json.loads(package)
    document["kernels"] = BUILT[document["name"]]
    package = canonical_bytes(document | {"hash": content_hash(document)}).decode()
    answer: Answer = usual_run(self, package=package, **arguments)
    return answer


def computing(name: str, description: str, op: str, result: Callable[..., Any]) -> Violation:
    """Return a violation in which an instruction computes something else."""
    other = {**kernels.INSTRUCTIONS, op: replace(kernels.INSTRUCTIONS[op], result=result)}
    return changed("WSP-07.2-16", name, description, ("wsp.kernels.INSTRUCTIONS", other))


def without_signs(like: Any, a: Any, b: Any) -> Any:
    def key(row: Any) -> Any:
        return row.view(f"u{row.itemsize}") if row.dtype.kind == "i" else row

    return np.where(key(a) < key(b), a, b)


def saturating(like: Any, a: Any, b: Any) -> Any:
    return np.where(a + b < a, np.iinfo(like.dtype).max, a + b) if like.dtype.kind == "u" else a + b


def in_pairs(like: Any, source: Any) -> Any:
    return np.sum(source, dtype=source.dtype)


def in_a_byte(like: Any, first: Any) -> Any:
    return (np.arange(len(like)) % 256).astype(like.dtype) + first


usual_compile = ReferenceAdapter.wsp_compile
KERNELS = [
    computing("min_without_signs", "compares integers without their signs", "min", without_signs),
    computing("saturating", "saturates sums of unsigned integers", "add", saturating),
    computing("sum_in_pairs", "adds the elements of a sum in pairs", "sum", in_pairs),
    computing("iota_of_a_byte", "counts to 255 in iota", "iota", in_a_byte),
    changed("WSP-01.2-05", "first_tensor", "takes the cycles of the first tensor",
        ("wsp.kernels.Cycles.of", lambda self, counts: self.fixed + self.per_element * next(iter(counts), 0))),
    changed("WSP-07.2-16", "two_dtypes", "takes a call with tensors of two dtypes",
        ("wsp.package.check_call", lambda kernel, tensors, path: None)),
    changed("WSP-07.2-11", "one_bit_more", "takes a default of a bit more than the width",
        ("wsp.package.Symbol.most", property(lambda symbol: (2 << symbol.width) - 1))),
    changed("WSP-07.2-16", "built_kernels", "runs the kernels that were compiled, not those of the package",
        ("adapter.ReferenceAdapter.wsp_compile", built), ("adapter.ReferenceAdapter.wsp_run", runs_what_was_built)),
]  # fmt: skip


usual_run = ReferenceAdapter.wsp_run
