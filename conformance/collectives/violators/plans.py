"""Plans with wrong chunks, awaits, buffers, fusion or folding (collectives specification, 2, 8 and 9)."""

from dataclasses import replace

from tessera_reference.collectives import planner
from tessera_reference.collectives.planner import Compute, Issue
from tessera_reference.collectives.planner import _Emitter as Emitter
from tessera_reference.graph.futures import (
    FutureCollective,
    IssueAllGather,
    IssueAllReduce,
    IssueBroadcast,
    IssueReduceScatter,
    PointToPoint,
)

from ...ir.violators.changes import changed, nothing

# Chunks

USUAL_RANGES, USUAL_CHUNK = planner.ranges, planner.chunk_elements


def slicing(clause, name, description, change):
    """Return a violation with other ranges."""

    def ranges(count, chunk):
        yield from change(list(USUAL_RANGES(count, chunk)))

    return changed(clause, name, description, ("collectives.planner.ranges", ranges))


def chunking(clause, name, description, elements):
    """Return a violation with another size of a chunk, from its bytes, the collective and the bytes of a tile."""

    def chunk_elements(operation, tile):
        usual = USUAL_CHUNK(operation, tile)
        if usual is None or not isinstance(operation, FutureCollective):
            return usual
        return elements(int(operation.chunk_size or 1), operation, tile or operation.x.dtype.storage_bytes)

    return changed(clause, name, description, ("collectives.planner.chunk_elements", chunk_elements))


def plain(chunk, operation, tile):
    return max(1, chunk // int(operation.x.dtype.storage_bytes))


def tiles_of_all_reduce(chunk, operation, tile):
    if isinstance(operation, IssueAllReduce):
        return max(1, chunk // tile) * tile // int(operation.x.dtype.storage_bytes)
    return plain(chunk, operation, tile)


CHUNKS = [
    slicing("COLL-08-09", "backwards", "begins with the last chunk", lambda found: found[::-1]),
    chunking("COLL-02.3-03", "tiles_of_all_reduce", "cuts an all-reduce alone at tiles", tiles_of_all_reduce),
]  # fmt: skip


# Awaits

USUAL_UNITS, USUAL_ISSUE, USUAL_AWAIT = Emitter.units, Emitter._issue, Emitter._await


def at_the_issue(self, step):
    """Issue, and wait at once."""
    USUAL_ISSUE(self, step)
    for future in step.futures:
        self._await(future)


def all_at_once(self, value):
    if value in self.pending:
        for future in list(self.pending):
            USUAL_AWAIT(self, future)


def at_the_end_too(self):
    found = USUAL_UNITS(self)
    for value in list(self.pending):
        USUAL_AWAIT(self, value)
    return found


def one_chunk(self, value):
    if value in self.pending:
        self.pending[value] = self.pending[value][:1]
    USUAL_AWAIT(self, value)


def at_the_issue_of(collective):
    """One collective is awaited where it is issued."""

    def issue(self, step):
        (at_the_issue if step.name.endswith(collective) else USUAL_ISSUE)(self, step)

    return issue


def behind_all(collective):
    """One collective is issued when those before it are awaited."""

    def issue(self, step):
        for future in list(self.pending) if step.name.endswith(collective) else ():
            self._await(future)
        USUAL_ISSUE(self, step)

    return issue


KINDS = ("reduce_scatter", "all_gather", "broadcast", "all_to_all")


def waits(clause, name, description, method, change):
    """Return a violation with other waits."""
    return changed(clause, name, description, (Emitter, method, change))


AWAITS = [
    waits("COLL-02.1-02", "waits_where_it_issues", "awaits where it issues", "_issue", at_the_issue),
    waits("COLL-09.1-03", "before_the_next_tile", "awaits where it issues", "_issue", at_the_issue),
    waits("COLL-08-10", "all_at_once", "awaits everything at the first use", "_await", all_at_once),
    *(
        waits("COLL-08-10", f"{kind}_at_once", "awaits where it issues", "_issue", at_the_issue_of(kind))
        for kind in KINDS
    ),
    *(waits("COLL-08-10", f"{kind}_behind_all", "awaits all before it", "_issue", behind_all(kind)) for kind in KINDS),
    waits("COLL-08-10", "dropped_awaits_stay", "awaits what nobody uses", "units", at_the_end_too),
    waits("COLL-02.1-02", "first_chunk", "waits for the first chunk", "_await", one_chunk),
]


# Operands


def with_inner(instruction):
    """Return the operands of an instruction and everything that its blocks use, also of their own."""
    members = [member for region in instruction.regions for block in region.blocks() for member in block.instructions]
    return [*instruction.operands, *(value for member in members for value in member.operands)]


OPERANDS = [
    changed("COLL-08-10", "inner_operands", "lists values of a branch as its operands",
        ("collectives.planner._used", with_inner)),
]  # fmt: skip


# Buffers

USUAL_BEFORE = Emitter._before


def with_options(change):
    """Change the options under which dependencies are computed."""

    def before(self, own):
        usual = self.options
        self.options = change(usual)
        try:
            return USUAL_BEFORE(self, own)
        finally:
            self.options = usual

    return before


def more_buffers(options):
    """Return options with one buffer more than there is."""
    return replace(options, depth=None if options.depth is None else options.depth + 1)


def fewer_buffers(options):
    """Return options with one chunk at a time."""
    return replace(options, depth=None if options.depth is None else 1)


def more_in_flight(options):
    """Return options with one chunk in flight more than allowed."""
    return replace(options, max_inflight=None if options.max_inflight is None else options.max_inflight + 1)


BUFFERS = [
    *(
        waits(clause, f"{name}_{clause[5:]}", description, "_before", with_options(change))
        for clause in ("COLL-02.3-04", "COLL-02.3-05")
        for name, description, change in (
            ("reused_too_early", "reuses a buffer before its chunk has ended", more_buffers),
            ("one_at_a_time", "sends one chunk at a time", fewer_buffers),
            ("one_too_many", "has one chunk too many under way", more_in_flight),
        )
    ),
]


# Fusion

USUAL_PARTS, USUAL_KEY, USUAL_FUSE = Issue.parts.func, planner._key, planner.fuse


def without(name):
    """Return a fusion key without an attribute."""

    def key(step, tile):
        usual = USUAL_KEY(step, tile)
        return None if usual is None else tuple(part for part in usual if name not in part)

    return key


def of_any_ranks(step, tile):
    usual = USUAL_KEY(step, tile)
    return None if usual is None else (*usual[:2], *usual[4:])


def without_dtype(step, tile):
    usual = USUAL_KEY(step, tile)
    return None if usual is None else (usual[0], *usual[2:])


def of_any_size(step, tile):
    operation = step.operation
    return USUAL_KEY(replace(step, operation=replace(operation, x=replace(operation.x, shape=()))), tile)


def fuse_late(program, tile):
    kept = program.steps
    program.steps = [replace(step, uses=()) if isinstance(step, Compute) else step for step in kept]
    plain_uses = {step.results: step for step in kept if isinstance(step, Compute)}
    USUAL_FUSE(program, tile)
    program.steps = [plain_uses[step.results] if isinstance(step, Compute) else step for step in program.steps]


FUSION = [
    changed("COLL-02.4-01", "any_op", "joins sums and maxima", ("collectives.planner._key", without("op"))),
    changed("COLL-02.4-01", "any_root", "joins broadcasts of different roots",
        ("collectives.planner._key", without("root"))),
    changed("COLL-02.4-01", "any_wire", "joins what travels over different wires",
        ("collectives.planner._key", without("dtype"))),
    changed("COLL-02.4-01", "any_ranks", "joins collectives of other groups",
        ("collectives.planner._key", of_any_ranks)),
    *(
        changed("COLL-02.4-01", f"any_{name}", f"joins collectives of any {name}",
                ("collectives.planner._key", without(name)))
        for name in ("algo", "path")
    ),
    changed("COLL-02.4-01", "any_dtype", "joins tensors of different dtypes",
        ("collectives.planner._key", without_dtype)),
    changed("COLL-02.4-01", "large_ends", "joins nothing across a large tensor",
        ("collectives.planner._key", of_any_size)),
    changed("COLL-02.4-01", "any_size", "joins more than a chunk",
        ("collectives.planner._fits", lambda *arguments: True)),
    changed("COLL-02.4-01", "parts_joined", "joins collectives of parts",
        ("collectives.planner.ELEMENTWISE", (FutureCollective,))),
    changed("COLL-02.4-01", "after_a_use", "joins what is used before", ("collectives.planner.fuse", fuse_late)),
]  # fmt: skip


# Folding

USUAL_FOLDABLE, USUAL_USES, USUAL_FOLD_BEFORE = planner._foldable, planner._uses, planner._before


def widening(step, program, narrowing):
    found = USUAL_FOLDABLE(step, program, False)
    return None if found is None else (found[0], replace(found[1], at="before" if narrowing else "after"))


def before_backwards(program):
    """Do what is folded before a collective in the other order."""
    USUAL_FOLD_BEFORE(program)
    for index, step in enumerate(program.steps):
        if isinstance(step, Issue):
            early = [one for one in step.folds if one.at == "before"]
            late = [one for one in step.folds if one.at != "before"]
            program.steps[index] = replace(step, folds=(*reversed(early), *late))


def only(side):
    """Return a violation that skips folds on one side."""
    clause = "COLL-02.4-02" if side == "_behind" else "COLL-02.4-04"
    return changed(clause, f"none{side}", f"folds nothing {side[1:]} a collective", (planner, side, nothing))


def wide_wire(step):
    return "fp32"


FOLDING = [
    *(
        changed(
            clause,
            f"all_reduce_alone_{clause[-2:]}",
            "folds beside an all-reduce alone",
            ("collectives.planner.PointToPoint", (PointToPoint, IssueReduceScatter, IssueAllGather, IssueBroadcast)),
        )
        for clause in ("COLL-02.4-02", "COLL-02.4-04")
    ),
    changed("COLL-02.4-02", "early_backwards", "folds what is before it backwards",
        ("collectives.planner._before", before_backwards)),
    changed("COLL-02.4-04", "any_cast", "folds a cast that widens", ("collectives.planner._foldable", widening)),
    changed("COLL-02.4-02", "used_twice", "folds what is used elsewhere",
        ("collectives.planner._uses", lambda program: dict.fromkeys(USUAL_USES(program), 1))),
    only("_before"),
    only("_behind"),
    changed("COLL-02.4-03", "narrow_sum", "adds in the dtype that travels", ("collectives.planner.Issue.reduces_in",
        property(lambda step: str(step.operation.x.dtype.name) if "op" in step.operation.attributes else None))),
    changed("COLL-02.4-05", "wide_wire", "sends fp32 where a cast is folded",
        ("collectives.planner.Issue.wire", property(wide_wire))),
]  # fmt: skip
