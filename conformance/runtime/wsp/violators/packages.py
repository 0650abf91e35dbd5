"""Packages with missing or wrong contents, and loaders that accept what they should refuse (WSP 7 and 7.2)."""

import json
from dataclasses import replace
from itertools import count

import numpy as np

from tessera_conformance.adapter import Refusal
from tessera_reference.wsp import kernels
from tessera_reference.wsp import package as parts
from tessera_reference.wsp.errors import PackageRefused, ProgramRefused
from tessera_reference.wsp.package import Channel, canonical_bytes, content_hash
from tessera_reference.wsp.targets import NAMES, target

from ....ir.violators.changes import around, breaks, changed, nothing, wrapped
from .answers import answered, asked
from .changes import defaulting


def packaged(clause, name, description, change, seal=True):
    """Return a violation whose packages have a document changed in place, with a new hash."""

    def rewrite(answer):
        document = json.loads(answer["package"])
        change(document)
        if seal and "hash" in document:
            document["hash"] = content_hash(document)
        answer["package"] = canonical_bytes(document).decode()

    return answered(clause, name, description, rewrite, "compile")


def within(*path, **others):
    """Return a change that sets members of one part, or of every entry of a table."""

    def change(document):
        part = document
        for step in path:
            part = part[step]
        for entry in part if isinstance(part, list) else [part]:
            entry.update(others)

    return change


@breaks("WSP-07.2-06", "only cpu_sim declares anything", packaged)
def one_target(document):
    if document["target"] != "cpu_sim":
        document["schedule"]["capabilities"] = {}


IDS = count(1)


@breaks("WSP-07.2-10", "ids of slots turn with builds", packaged)
def slots_by_build(document):
    if next(IDS) % 2 and len(document["slots"]) > 1:
        first, second, *_ = document["slots"]
        first["name"], second["name"] = second["name"], first["name"]


LAST = {}


@breaks("WSP-07.2-11", "a symbol that is too wide loses bits", asked, "run")
def truncated_symbols(given):
    try:
        widths = {symbol["name"]: symbol["width"] for symbol in json.loads(given["package"])["symbols"]}
    except (ValueError, KeyError, TypeError):
        return given
    given_symbols = (given.get("symbols") or {}).items()
    return {**given, "symbols": {name: str(int(value) % (1 << widths.get(name, 64))) for name, value in given_symbols}}


@breaks("WSP-07.2-13", "symbols of a refused run stay", "adapter.ReferenceAdapter._prepared")
def sticky_where_refused(usual, adapter, package, symbols=None, **others):
    kept, LAST["refused"] = LAST.get("refused", {}), {}
    try:
        return usual(adapter, package, symbols=symbols or kept, **others)
    except Refusal:
        LAST["refused"] = {"first": symbols["first"]} if "first" in (symbols or {}) else {}
        raise


STEP = "adapter.ReferenceAdapter.wsp_step"


@breaks("WSP-03.4.2-06", "steps the newest run for one that there is not, and refuses", STEP)
def steps_the_newest(usual, adapter, *, run, instants):
    if run not in adapter._runs and adapter._runs:
        usual(adapter, run=max(adapter._runs), instants=instants)
    return usual(adapter, run=run, instants=instants)


def loading(clause, name, description, code, mend):
    """Return a violation that mends a package which is refused with this code; `mend` returns None to refuse it."""

    def read(usual, data):
        try:
            return usual(data)
        except PackageRefused as problem:
            mended = mend(json.loads(data)) if problem.code == code else None
            if mended is None:
                raise
            return mended

    return wrapped(clause, name, description, "wsp.package._document", read)


def abi_like(clause, name, description, fits):
    def mend(found):
        fitting = isinstance(found, dict) and fits(found.get("wsp_runtime_abi"))
        return found | {"wsp_runtime_abi": parts.ABI} if fitting else None

    return loading(clause, name, description, "UNKNOWN_ABI", mend)


EMPTY = {"kernels": [], "slots": [], "symbols": [], "tensors": [], "csp": {"channels": [], "processes": []}}


def unread(clause, name, description, path, value):
    """Return a violation whose loader accepts any value at a path of a package and reads it as `value`."""

    def read(usual, stated):
        try:
            return usual(stated)
        except ProgramRefused as problem:
            if not problem.path.startswith(path):
                raise
        *steps, last = [int(word) if word.isdigit() else word for word in path.strip("/").split("/")]
        found = json.loads(json.dumps(stated))
        target = found
        for step in steps:
            target = target[step]
        target[last] = value
        return usual(found)

    return wrapped(clause, name, description, "wsp.package._package", read)


BUILT = {}


def built(usual, self, **arguments):
    answer = usual(self, **arguments)
    document = json.loads(answer["package"])
    BUILT[document["name"]] = document["kernels"]
    return answer


def runs_what_was_built(usual, self, *, package, **arguments):
    self.wsp_load(package=package)
    document = json.loads(package)
    document["kernels"] = BUILT[document["name"]]
    package = canonical_bytes(document | {"hash": content_hash(document)}).decode()
    return usual(self, package=package, **arguments)


def computing(name, description, op, result):
    other = {**kernels.INSTRUCTIONS, op: replace(kernels.INSTRUCTIONS[op], result=result)}
    return changed("WSP-07.2-16", name, description, ("wsp.kernels.INSTRUCTIONS", other))


def without_signs(like, a, b):
    def key(row):
        return row.view(f"u{row.itemsize}") if row.dtype.kind == "i" else row

    return np.where(key(a) < key(b), a, b)


VIOLATORS = [
    packaged("WSP-07.2-15", "another_key", "another key of the ABI version",
        lambda given: given.update(abi_version=given.pop("wsp_runtime_abi"))),
    packaged("WSP-07.2-01", "numbered_builds", "every build is another package",
        lambda given: given.update(name=f"{given['name']}-{next(IDS)}")),
    packaged("WSP-07.2-01", "one_kernel_id", "kernels of one id", within("kernels", id=0)),
    packaged("WSP-07.2-02", "one_executor", "every kernel is one of vectors", within("kernels", executor="vector")),
    packaged("WSP-07.2-17", "one_entry", "kernels of one entry symbol", within("kernels", entry="main")),
    packaged("WSP-07.2-04", "one_policy_id", "one id for all", within("schedule", "policy", id="round_robin")),
    packaged("WSP-07.2-18", "one_worker", "workers are left out",
        within("schedule", "policy", parameters={"workers": 4, "worker": {"constant": 0}})),
    packaged("WSP-07.2-05", "usual_window", "the usual task window", within("schedule", "task_window", size=64)),
    packaged("WSP-07.2-07", "one_channel_id", "channels of one id", within("csp", "channels", id=0)),
    packaged("WSP-07.2-08", "one_capacity", "channels of one capacity", within("csp", "channels", capacity=1)),
    packaged("WSP-07.2-09", "zero_latency", "channels of no latency", within("csp", "channels", latency=0)),
    packaged("WSP-07.2-10", "no_slots", "slots are not listed", within(slots=[])),
    packaged("WSP-07.2-12", "fixed", "symbols are never updated", within("symbols", update="never")),
    packaged("WSP-07.2-14", "constant_hash", "one hash", within(hash="sha256:" + "0" * 64), seal=False),
    changed("WSP-07.2-19", "two_tokens", "channels have two places by default", defaulting(Channel, capacity=2)),
    changed("WSP-07.2-20", "one_cycle", "channels have a latency by default", defaulting(Channel, latency=1)),
    asked("WSP-07.2-13", "no_update", "symbols keep their defaults",
        lambda given: {name: value for name, value in given.items() if name != "symbols"}, "run"),
    abi_like("WSP-07-01", "no_abi", "a package without a version is loaded", lambda found: found is None),
    abi_like("WSP-07.2-14", "abi_prefix", "versions that begin as this one are loaded",
        lambda found: str(found).startswith("v10.0")),
    abi_like("WSP-07.2-14", "prefix_of_abi", "versions with which this one begins are loaded",
        lambda found: "v10.0".startswith(str(found))),
    abi_like("WSP-07.2-14", "abi_any_case", "case does not count in versions",
        lambda found: str(found).lower() == "v10.0"),
    abi_like("WSP-07.2-14", "abi_stripped", "blanks do not count in versions",
        lambda found: str(found).strip() == "v10.0"),
    abi_like("WSP-07-01", "newer_abi", "newer versions are loaded", lambda found: found == "v11.0"),
    abi_like("WSP-07-01", "minor_abi", "other minor versions are loaded", lambda found: found == "v10.1"),
    loading("WSP-07.2-14", "altered_accepted", "an altered package is loaded", "ALTERED", dict),
    loading("WSP-07.2-10", "missing_is_empty", "a missing payload is an empty one", "MISSING_PAYLOAD",
        lambda found: {"target": "cpu_sim", "format": 1, "hash": "", "schedule": {}} | EMPTY | found),
    wrapped("WSP-07.2-14", "line_feed_added", "the line feed at the end may lack", "wsp.package._document",
        lambda usual, data: usual(data if data.endswith(b"\n") else data + b"\n")),
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
    changed("WSP-07.2-14", "any_target", "packages for unknown targets are loaded",
        ("wsp.package._check_target", nothing)),
    changed("WSP-07.1-03", "any_claim", "a package may claim to enforce anything",
        ("wsp.package._check_state", nothing)),
    computing("min_without_signs", "compares integers without their signs", "min", without_signs),
    computing("saturating", "saturates sums of unsigned integers", "add",
        lambda like, a, b: np.where(a + b < a, np.iinfo(like.dtype).max, a + b) if like.dtype.kind == "u" else a + b),
    computing("sum_in_pairs", "adds the elements of a sum in pairs", "sum",
        lambda like, source: np.sum(source, dtype=source.dtype)),
    changed("WSP-07.2-16", "scalars_by_fp64", "rounds scalars to fp64 first", ("wsp.kernels._element",
        lambda value, dtype: (np.float64 if dtype.kind == "f" else np.uint64)(value).astype(dtype))),
    changed("WSP-01.2-05", "first_tensor", "takes the cycles of the first tensor",
        ("wsp.kernels.Cycles.of", lambda self, counts: self.fixed + self.per_element * next(iter(counts), 0))),
    changed("WSP-07.2-16", "two_dtypes", "takes a call with tensors of two dtypes",
        ("wsp.package.check_call", lambda kernel, tensors, path: None)),
    changed("WSP-07.2-11", "one_bit_more", "takes a default of a bit more than the width",
        ("wsp.package.Symbol.most", property(lambda symbol: (2 << symbol.width) - 1))),
    changed("WSP-07.2-16", "built_kernels", "runs the kernels that were compiled, not those of the package",
        ("adapter.ReferenceAdapter.wsp_compile", around(built)),
        ("adapter.ReferenceAdapter.wsp_run", around(runs_what_was_built))),
    wrapped("WSP-07.1-09", "either_phase", "any phase is loaded", "wsp.package._check_target",
        lambda usual, package:
            usual(replace(package, phase=target(package.target).phase) if package.target in NAMES else package)),
]  # fmt: skip
