"""Plans with wrong chunks, awaits, buffers, fusion or folding (collectives specification, 2, 8 and 9)."""

from dataclasses import replace
from functools import partial

from tessera_reference.collectives.planner import Compute, Issue
from tessera_reference.graph import futures
from tessera_reference.graph.elementwise import Cast
from tessera_reference.graph.futures import FutureCollective, IssueAllReduce, PointToPoint

from ...ir.violators.changes import changed, nothing
from .changes import at, result_of

# Chunks


def tiles_of_all_reduce(usual, operation, tile):
    found = usual(operation, tile)
    if found is None or not isinstance(operation, FutureCollective):
        return found
    size, chunk = operation.x.dtype.storage_bytes, int(operation.chunk_size or 1)
    unit = (tile or size) if isinstance(operation, IssueAllReduce) else size
    return max(1, chunk // unit) * unit // size


# Awaits


def at_the_issue(usual, self, step, of=""):
    """Issue, and wait at once."""
    usual(self, step)
    if step.name.endswith(of):
        for future in step.futures:
            self._await(future)


def behind_all(usual, self, step, of):
    """Issue when those before it are awaited."""
    for future in list(self.pending) if step.name.endswith(of) else ():
        self._await(future)
    usual(self, step)


def all_at_once(usual, self, value):
    if value in self.pending:
        for future in list(self.pending):
            usual(self, future)


def at_the_end_too(usual, self):
    found = usual(self)
    for value in list(self.pending):
        self._await(value)
    return found


def one_chunk(usual, self, value):
    if value in self.pending:
        self.pending[value] = self.pending[value][:1]
    usual(self, value)


def with_inner(instruction):
    """Return the operands of an instruction and everything that its blocks use, also of their own."""
    members = [member for region in instruction.regions for block in region.blocks() for member in block.instructions]
    return [*instruction.operands, *(value for member in members for value in member.operands)]


issuing, awaiting = at("collectives.planner._Emitter._issue"), at("collectives.planner._Emitter._await")


# Buffers


def with_option(usual, self, own, name, change):
    """Return the dependencies of a unit under another number of buffers or of chunks in flight."""
    options, value = self.options, getattr(self.options, name)
    self.options = options if value is None else replace(options, **{name: change(value)})
    try:
        return usual(self, own)
    finally:
        self.options = options


BUFFERS = [
    at("collectives.planner._Emitter._before")(clause, f"{name}_{clause[5:]}", description,
        partial(with_option, name=option, change=change))
    for clause in ("COLL-02.3-04", "COLL-02.3-05")
    for name, description, option, change in (
        ("reused_too_early", "reuses a buffer before its chunk has ended", "depth", lambda depth: depth + 1),
        ("one_at_a_time", "sends one chunk at a time", "depth", lambda depth: 1),
        ("one_too_many", "has one chunk too many under way", "max_inflight", lambda most: most + 1),
    )
]  # fmt: skip


# Fusion


def of_first_members(usual, instruction):
    """The operands of the first operation of each block alone are values that an instruction takes."""
    blocks = [block for region in instruction.regions for block in region.blocks()]
    taken = {value for block in blocks for member in block.instructions[:1] for value in member.operands}
    return [value for value in usual(instruction) if not blocks or value in (*instruction.operands, *taken)]


def whatever_overflows(usual, step, program, narrowing):
    """Fold a cast as one that saturates."""
    instruction = step.instruction
    if instruction is not None and isinstance(instruction.operation, Cast):
        saturating = replace(instruction.operation, overflow="saturate")
        step = replace(step, instruction=replace(instruction, operation=saturating))
    return usual(step, program, narrowing)


def fuse_late(usual, program, tile):
    kept = {step.results: step for step in program.steps if isinstance(step, Compute)}
    program.steps = [replace(step, uses=()) if isinstance(step, Compute) else step for step in program.steps]
    usual(program, tile)
    program.steps = [kept[step.results] if isinstance(step, Compute) else step for step in program.steps]


keyed = result_of("collectives.planner._key")


# Folding


def widening(usual, step, program, narrowing):
    found = usual(step, program, False)
    return None if found is None else (found[0], replace(found[1], at="before" if narrowing else "after"))


def before_backwards(usual, program):
    """Do what is folded before a collective in the other order."""
    usual(program)
    for index, step in enumerate(program.steps):
        if isinstance(step, Issue):
            early = [one for one in step.folds if one.at == "before"]
            late = [one for one in step.folds if one.at != "before"]
            program.steps[index] = replace(step, folds=(*reversed(early), *late))


OTHERS = (PointToPoint, futures.IssueReduceScatter, futures.IssueAllGather, futures.IssueBroadcast)

VIOLATIONS = [
    result_of("collectives.planner.ranges")("COLL-08-09", "backwards", "begins with the last chunk",
        lambda found: reversed(list(found))),
    at("collectives.planner.chunk_elements")("COLL-02.3-03", "tiles_of_all_reduce", "cuts an all-reduce alone at tiles",
        tiles_of_all_reduce),
    issuing("COLL-02.1-02", "waits_where_it_issues", "awaits where it issues", at_the_issue),
    issuing("COLL-09.1-03", "before_the_next_tile", "awaits where it issues", at_the_issue),
    awaiting("COLL-08-10", "all_at_once", "awaits everything at the first use", all_at_once),
    *(
        issuing("COLL-08-10", f"{kind}_{name}", description, partial(change, of=kind))
        for name, description, change in (
            ("at_once", "awaits where it issues", at_the_issue),
            ("behind_all", "awaits all before it", behind_all),
        )
        for kind in ("reduce_scatter", "all_gather", "broadcast", "all_to_all")
    ),
    at("collectives.planner._Emitter.units")("COLL-08-10", "dropped_awaits_stay", "awaits what nobody uses",
        at_the_end_too),
    awaiting("COLL-02.1-02", "first_chunk", "waits for the first chunk", one_chunk),
    changed("COLL-08-10", "inner_operands", "lists values of a branch as its operands",
        ("collectives.planner._used", with_inner)),
    *(
        keyed("COLL-02.4-01", f"any_{name}", f"joins {joined}",
              lambda key, member=member: key and tuple(part for part in key if member not in part))
        for name, member, joined in (
            ("op", "op", "sums and maxima"),
            ("root", "root", "broadcasts of different roots"),
            ("wire", "dtype", "what travels over different wires"),
            ("algo", "algo", "collectives of any algo"),
            ("path", "path", "collectives of any path"),
        )
    ),
    keyed("COLL-02.4-01", "any_ranks", "joins collectives of other groups", lambda key: key and (*key[:2], *key[4:])),
    keyed("COLL-02.4-01", "any_dtype", "joins tensors of different dtypes", lambda key: key and (key[0], *key[2:])),
    at("collectives.planner._key")("COLL-02.4-01", "large_ends", "joins nothing across a large tensor",
        lambda usual, step, tile: usual(
            replace(step, operation=replace(step.operation, x=replace(step.operation.x, shape=()))), tile)),
    changed("COLL-02.4-01", "any_size", "joins more than a chunk",
        ("collectives.planner._fits", lambda *arguments: True)),
    changed("COLL-02.4-01", "parts_joined", "joins collectives of parts",
        ("collectives.planner.ELEMENTWISE", (FutureCollective,))),
    at("collectives.planner._used")("COLL-02.1-02", "of_first_members",
        "awaits what the first operation of a block takes", of_first_members),
    at("collectives.planner._foldable")("COLL-02.4-02", "whatever_overflows", "folds casts as ones that saturate",
        whatever_overflows),
    at("collectives.planner._fits")("COLL-02.4-01", "fits_the_last", "joins a tensor that fits beside the last one",
        lambda usual, before, step, tile: usual(replace(before, types=before.types[-1:]), step, tile)),
    at("collectives.planner.fuse")("COLL-02.4-01", "after_a_use", "joins what is used before", fuse_late),
    *(
        changed(clause, f"all_reduce_alone_{clause[-2:]}", "folds beside an all-reduce alone",
                ("collectives.planner.PointToPoint", OTHERS))
        for clause in ("COLL-02.4-02", "COLL-02.4-04")
    ),
    at("collectives.planner._before")("COLL-02.4-02", "early_backwards", "folds what is before it backwards",
        before_backwards),
    at("collectives.planner._foldable")("COLL-02.4-04", "any_cast", "folds a cast that widens", widening),
    result_of("collectives.planner._uses")("COLL-02.4-02", "used_twice", "folds what is used elsewhere",
        lambda found: dict.fromkeys(found, 1)),
    changed("COLL-02.4-04", "none_before", "folds nothing before a collective",
        ("collectives.planner._before", nothing)),
    changed("COLL-02.4-02", "none_behind", "folds nothing behind a collective",
        ("collectives.planner._behind", nothing)),
    changed("COLL-02.4-03", "narrow_sum", "adds in the dtype that travels", ("collectives.planner.Issue.reduces_in",
        property(lambda step: str(step.operation.x.dtype.name) if "op" in step.operation.attributes else None))),
    changed("COLL-02.4-05", "wide_wire", "sends fp32 where a cast is folded",
        ("collectives.planner.Issue.wire", property(lambda step: "fp32"))),
]  # fmt: skip
