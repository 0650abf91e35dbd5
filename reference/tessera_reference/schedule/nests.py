"""The loop nests of a scheduled function, their resources, and their legality (spec sections 6, 11)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from ..graph import constant as layouts
from ..graph.constant import Constant
from ..graph.control import Directive
from ..graph.elementwise import Elementwise
from ..graph.reductions import MatMul
from ..ir.diagnostics import Category, Diagnostic, Location, Rejection
from ..ir.operation import Block, Composite, Function, Instruction, Module, Refusal, Walk, diagnostic_of, trampoline
from ..ir.targets import Target
from ..ir.text import read_layout
from ..ir.types import Tensor, Value, dtype_of
from ..numerics.formats import DType
from .choices import THREADS, Kind, TileSizes, contraction_tile, extents, kind_of, leads, map_tile, rows_taken
from .fusion import expanded, in_order, names_of
from .operations import Annotations, LayoutCast, Prefetch, Tile, host_functions, is_alias, require_cover

# The loop nests of a scheduled function: the operations that share a loop over tiles, and their staging (section 6).
#
# Execution and Tile lowering both follow `Plan.block`. Its result has no schedule operations: operands are the values
# before them. Composites are expanded first. A function that differentiates has no nests, and neither has any function
# that it calls: see `annotations.host_functions`.


@dataclass(frozen=True, eq=False)
class Nest:
    """Loops over tiles.

    `contract`: instructions[0] is the matmul, the others constants and an elementwise epilogue over the product's
    shape. `map`: constants and elementwise operations over one shape, or one operation that moves elements. `rows`: one
    operation on independent rows along one axis. Constants that elementwise operations take are among the instructions;
    any other operand from outside is an input, including scalars.
    """

    kind: Kind
    instructions: tuple[Instruction, ...]
    inputs: tuple[Value, ...]
    """The values read from memory, in order of first use."""
    outputs: tuple[Value, ...]
    """The values written to memory: those used outside, and those that nothing uses."""
    tile: TileSizes
    """The sizes m, n and k; k is 1 without a contraction. `rows` has m rows together, n of their elements at a time."""
    depth: int
    staged: frozenset[Value]
    """The inputs that are read through shared memory."""
    align: int = 16
    """The alignment in bytes of staged values."""

    @property
    def operations(self) -> tuple[Instruction, ...]:
        """The instructions without constants."""
        return tuple(step for step in self.instructions if not isinstance(step.operation, Constant))

    @property
    def lead(self) -> Instruction:
        """The operation that determines the nest's shape; in a contraction, the product."""
        return self.operations[0]

    @property
    def location(self) -> Location:
        """The location of its first operation."""
        return self.lead.location


Planned = tuple[Nest | Instruction, ...]


@dataclass(frozen=True)
class Around:
    """The surroundings of a nest: kinds, uses of values, constants."""

    kinds: dict[Instruction, Kind | None]
    consumers: dict[Value, list[Instruction]]
    foreign: set[Value]
    """The values that leave the block."""
    constants: dict[Value, Instruction]

    @classmethod
    def of(cls, instructions: Sequence[Instruction], foreign: set[Value]) -> Around:
        """Return the kinds, uses and constants of a block's instructions."""
        consumers: dict[Value, list[Instruction]] = {}
        for instruction in instructions:
            for value in instruction.operands:
                consumers.setdefault(value, []).append(instruction)
        constants = {step.results[0]: step for step in instructions if isinstance(step.operation, Constant)}
        return cls({instruction: kind_of(instruction) for instruction in instructions}, consumers, foreign, constants)

    def is_used_outside(self, value: Value, part: Sequence[Instruction]) -> bool:
        """True if a value of a nest is an output: something outside reads it, or nothing does."""
        consumers = self.consumers.get(value, [])
        return value in self.foreign or not consumers or any(consumer not in part for consumer in consumers)


class Plan:
    """The plan of one function."""

    def __init__(self, function: Function, target: Target, host: bool = False) -> None:
        self.target = target
        self.annotations = Annotations(function)
        self.is_host = host or self.annotations.is_host
        self.names = names_of(function)
        self._read_as: dict[Instruction, tuple[Value, ...]] = {}

    def root(self, value: Value) -> Value:
        """Return the value before all schedule operations."""
        return self.annotations.root(value)

    def block(self, block: Block) -> Planned:
        """Return the nests of a block, and its instructions outside nests."""
        shown = block.instructions if self.is_host else expanded(block, self.names)
        instructions = [self._plain(instruction) for instruction in shown if not is_dropped(instruction)]
        if self.is_host:
            return tuple(instructions)
        around = Around.of(instructions, self._used_elsewhere(block))
        planned: list[Nest | Instruction] = []
        for group in in_order(instructions, self.annotations):
            for part in segments(group, around.kinds):
                kind = around.kinds[part[0]]
                planned.append(self._nest(kind, part, around) if kind else part[0])
        return without_sunk(planned, around.foreign)

    def _plain(self, instruction: Instruction) -> Instruction:
        """Return an instruction on root values, without schedule operations; a layout cast becomes that of Graph IR."""
        operation = instruction.operation
        if isinstance(operation, LayoutCast):
            operation = layouts.LayoutCast(x=operation.x, to=operation.to)
        plain = replace(instruction, operation=operation, operands=tuple(map(self.root, instruction.operands)))
        self._read_as[plain] = instruction.operands
        return plain

    def _used_elsewhere(self, block: Block) -> set[Value]:
        """Return the values that the block yields or that regions inside it use."""
        used = set(map(self.root, block.results))
        for region in (region for instruction in block.instructions for region in instruction.regions):
            for inner in region.blocks():
                used.update(map(self.root, inner.results))
                used.update(self.root(value) for instruction in inner.instructions for value in instruction.operands)
        return used

    def _nest(self, kind: Kind, part: Sequence[Instruction], around: Around) -> Nest:
        made_here = {member.results[0] for member in part}
        sinks = kind == "contract" or isinstance(part[0].operation, Elementwise)
        instructions = _with_constants(part, around.constants) if sinks else tuple(part)
        produced = {value for instruction in instructions for value in instruction.results}
        read = dict.fromkeys(value for instruction in instructions for value in instruction.operands)
        inputs = tuple(value for value in read if value not in produced)
        outputs = tuple(member.results[0] for member in part if around.is_used_outside(member.results[0], part))
        pipelines = [pipeline for member in part if (pipeline := self.annotations.pipelines.get(member.results[0]))]
        depth = pipelines[-1].depth if pipelines else 1
        staged, align = self._staged(part, made_here)
        return Nest(kind, instructions, inputs, outputs, self._tile(kind, part, depth), depth, staged, align)

    def _staged(self, part: Sequence[Instruction], made_here: set[Value]) -> tuple[frozenset[Value], int]:
        staged, align = set(), 16
        for instruction in part:
            for value, read in zip(instruction.operands, self._read_as[instruction], strict=True):
                prefetch = self.annotations.prefetches.get(read)
                if prefetch is None or value in made_here or not isinstance(value.type, Tensor):
                    continue
                assert isinstance(prefetch.operation, Prefetch)
                if prefetch.operation.scope == "shared":
                    staged.add(value)
                    align = max(align, prefetch.operation.align)
        return frozenset(staged), align

    def _tile(self, kind: Kind, part: Sequence[Instruction], depth: int) -> TileSizes:
        """Return the last tile sizes that a schedule states for its values, else the default ones."""
        tiles = [tile for member in part if (tile := self.annotations.tiles.get(member.results[0]))]
        stated = tiles[-1] if tiles else None
        lead = part[0]
        if kind == "contract":
            return self._contraction_tile(lead, tiles, depth)
        if kind == "rows":
            return rows_taken(lead, (stated.m, stated.n) if stated else None, self.target)
        return (stated.m, stated.n, 1) if stated else map_tile(lead.results[0].type)

    def _contraction_tile(self, product: Instruction, stated: Sequence[Tile], depth: int) -> TileSizes:
        left = product.operands[0].type
        assert isinstance(left, Tensor)
        (*_, m, k), (*_, n) = extents(left), extents(product.results[0].type)
        default = contraction_tile((m, n, k), left.dtype, self.target, depth)
        if not stated:
            return default
        depths = [tile.k for tile in stated if tile.k is not None]
        return stated[-1].m, stated[-1].n, depths[-1] if depths else default[2]


def is_dropped(instruction: Instruction) -> bool:
    """True if an instruction only states the schedule."""
    return is_alias(instruction) or isinstance(instruction.operation, Directive)


def segments(group: Sequence[Instruction], kinds: dict[Instruction, Kind | None]) -> list[list[Instruction]]:
    """Return a group in parts that share a nest: a lead and elementwise operations over its shape (AMB-LANG-210)."""
    parts: list[list[Instruction]] = []
    for instruction in group:
        if parts and _joins(instruction, parts[-1][0], kinds):
            parts[-1].append(instruction)
        else:
            parts.append([instruction])
    return parts


def _joins(instruction: Instruction, lead: Instruction, kinds: dict[Instruction, Kind | None]) -> bool:
    """True if an instruction can share the nest of a lead."""
    follows = kinds[instruction] == "map" and isinstance(instruction.operation, Elementwise)
    shapes = [extents(member.results[0].type) for member in (lead, instruction)]
    return leads(kinds[lead], lead) and follows and shapes[0] == shapes[1]


def without_sunk(planned: Iterable[Nest | Instruction], foreign: set[Value]) -> Planned:
    """Drop constants that only nests use, since nests have copies of them."""
    every = tuple(planned)
    used = set(foreign)
    for member in every:
        used.update(member.inputs if isinstance(member, Nest) else member.operands)
    return tuple(
        entry
        for entry in every
        if isinstance(entry, Nest) or not isinstance(entry.operation, Constant) or entry.results[0] in used
    )


def _with_constants(part: Sequence[Instruction], constants: dict[Value, Instruction]) -> tuple[Instruction, ...]:
    """Return elementwise operations, preceded by the constants that they take."""
    instructions: list[Instruction] = []
    for instruction in part:
        for value in instruction.operands:
            constant = constants.get(value)
            if constant is not None and constant not in instructions:
                instructions.append(constant)
        instructions.append(instruction)
    return tuple(instructions)


# The resources of a nest: shared memory for its stages, registers of a thread (section 11; LANG-11-08, -09).
#
# Shared memory is exact: the buffers of every staged operand, one for each stage of the pipeline. Registers are an
# estimate (AMB-LANG-68), for the simulated targets alone: a thread holds its part of an output tile in accumulators,
# the values that it needs at once for the other operations, and a few registers for addresses.


ADDRESSES = 16
"""The number of registers for addresses and counters."""


def shared_bytes(nest: Nest) -> int:
    """Return the bytes of shared memory that a block of the nest takes."""
    return sum(buffer for _, buffer in buffers(nest))


def buffers(nest: Nest) -> Iterator[tuple[Value, int]]:
    """Yield each read of a staged operand, and the bytes of all its buffers, each of which begins aligned."""
    for role, value in reads(nest):
        if value in nest.staged:
            size = prod(tile_of(nest, role, value)) * _held(value).storage_bytes
            yield value, -(-size // nest.align) * nest.align * (nest.depth if role != "epilogue" else 1)


def reads(nest: Nest) -> tuple[tuple[str, Value], ...]:
    """Return the tiles that are read from memory: `left` and `right` of a product, `epilogue`, `rows`, `map`."""
    lead, inside = nest.lead, {value for instruction in nest.instructions for value in instruction.results}
    values = []
    if isinstance(lead.operation, MatMul):
        values += [("left", lead.operands[0]), ("right", lead.operands[1])]
    elif nest.kind == "rows":
        values += [("rows", lead.operands[0])]
    others = dict.fromkeys(value for step in nest.operations[len(values) > 0 :] for value in step.operands)
    role = "epilogue" if values else "map"
    return (*values, *((role, value) for value in others if value not in inside))


def tile_of(nest: Nest, role: str, value: Value) -> tuple[int, int]:
    """Return the extents of a buffer for a read."""
    m, n, k = nest.tile
    if role == "left":
        return m, k
    if role == "right":
        return k, n
    shape = value.type.shape if isinstance(value.type, Tensor) else ()
    if role != "rows" and isinstance(nest.operations[-1].operation, Elementwise):  # broadcast operands are smaller
        rows, columns = (1, 1, *shape)[-2:]
        return (1 if rows == 1 else m), (1 if columns == 1 else n)
    return m, n


def registers(nest: Nest, target: Target) -> int:
    """Return the estimated number of 32-bit registers of a thread."""
    m, n, _ = nest.tile
    share = -(-m * n // min(THREADS, target.threads_per_block))
    lead = nest.lead.operation
    accumulators = share * words(lead.accum) if isinstance(lead, MatMul) else 0
    gathered = share * words(_held(nest.lead.operands[0])) if nest.kind == "rows" else 0
    return accumulators + gathered + at_once(nest) + ADDRESSES


def at_once(nest: Nest) -> int:
    """Return the most registers that the values of one element take at a time."""
    last: dict[Value, int] = {}
    for position, instruction in enumerate(nest.instructions):
        last.update(dict.fromkeys((*instruction.operands, *instruction.results), position))
    live: set[Value] = set()
    most = 0
    for position, instruction in enumerate(nest.instructions):
        live.update(instruction.operands, instruction.results)
        most = max(most, sum(words(_held(value)) for value in live))
        live = {value for value in live if last[value] > position}
    return most


def words(element: DType) -> int:
    """Return the registers of one value."""
    return -(-element.bits // 32)


def _held(value: Value) -> DType:
    element = dtype_of(value.type)
    assert element is not None
    return element


# Functions with every nest replaced by instructions: one that executes it, or the launch of its kernel.


Replacement = Callable[[Nest], Sequence[Instruction]]
"""A function from a nest to instructions that define its outputs, the same values, from its inputs."""


def with_nests_replaced(module: Module, target: Target, replacement: Replacement) -> Module:
    """Return a module without schedule operations and composites, each nest replaced; device kernels stay unchanged.

    Raises `Rejection` for a fusion that no order of execution allows.
    """
    host = host_functions(module)
    functions = {
        name: function if function.device else rewritten(function, Plan(function, target, name in host), replacement)
        for name, function in module.functions.items()
    }
    return replace(module, functions=functions)


def rewritten(function: Function, plan: Plan, replacement: Replacement) -> Function:
    """Return a function with the nests of its plan replaced."""
    return replace(function, body=trampoline(_block(function.body, plan, replacement)))


def _block(block: Block, plan: Plan, replacement: Replacement) -> Walk[Block]:
    instructions: list[Instruction] = []
    for item in plan.block(block):
        if isinstance(item, Nest):
            instructions += replacement(item)
        else:
            regions = []
            for region in item.regions:
                regions.append((yield _block(region, plan, replacement)))
            instructions.append(replace(item, regions=tuple(regions)))
    return Block(block.arguments, tuple(instructions), tuple(map(plan.root, block.results)), block.exit)


# Legality of the schedule of a whole function (spec sections 6.2, 6.3, 11; LANG-11-06, -08, -09).
#
# Operations check the rules that depend on their operands' types alone; here are the rules that depend on producers,
# consumers and the target.


def verify_schedule(function: Function, target: Target) -> None:
    """Raise `Rejection` unless the schedule of a function of the host can be executed on a target."""
    if function.device:
        return
    problems = list(Legality(function, target).findings())
    if problems:
        raise Rejection(problems)


class Legality:
    """A checker of one function."""

    def __init__(self, function: Function, target: Target) -> None:
        self.function = function
        self.target = target
        self.plan = Plan(function, target)
        self.nests: dict[Value, Nest] = {}
        """The nest that computes each value."""
        self.producers = {value: producer for producer in function.body.walk() for value in producer.results}
        self.readers: dict[Value, list[Instruction]] = {}
        for instruction in function.body.walk():
            for value in instruction.operands:
                self.readers.setdefault(value, []).append(instruction)

    def findings(self) -> Iterator[Diagnostic]:
        """Yield all violations."""
        for block in self.function.body.blocks():
            try:
                nests = [item for item in self.plan.block(block) if isinstance(item, Nest)]
            except Rejection as rejection:
                yield from rejection.diagnostics
                continue
            self.nests.update({step.results[0]: nest for nest in nests for step in nest.instructions})
            for nest in nests:
                yield from self._resources(nest)
        for instruction in self.function.body.walk():
            yield from self._operation(instruction)

    def _resources(self, nest: Nest) -> Iterator[Diagnostic]:
        limit, needed = self.target.shared_bytes, shared_bytes(nest)
        if needed > limit:
            alone = next((value for value, size in buffers(nest) if size // nest.depth > limit), None)
            what = f"one tile of %{alone.name}" if alone is not None else "its stages"
            room = f"a block of {self.target.name} has: {needed} of {limit} bytes"
            message = f"{what} takes more shared memory than {room}"
            requirement = f"at most {limit} bytes for all buffers"
            clause = "LANG-06.2-03" if alone is not None else "LANG-11-08"
            remedy = "smaller tiles, or a pipeline that is less deep"
            yield self._finding(nest.lead, message, requirement, clause, remedy)
        estimate, limit = registers(nest, self.target), self.target.registers
        if estimate > limit:
            message = f"a thread is estimated to need {estimate} registers, and one of {self.target.name} has {limit}"
            yield self._finding(nest.lead, message, f"at most {limit} registers", "LANG-11-09", "smaller tiles")

    def _operation(self, instruction: Instruction) -> Iterator[Diagnostic]:
        operation = instruction.operation
        if isinstance(operation, Tile):
            yield from self._tile(instruction, operation)
        elif isinstance(operation, Prefetch):
            yield from self._prefetch(instruction)
        elif isinstance(operation, LayoutCast):
            yield from self._cast(instruction, operation)

    def _tile(self, instruction: Instruction, tile: Tile) -> Iterator[Diagnostic]:
        """Require that only contractions state k, and that it covers the summed extent."""
        if tile.k is None:
            return
        root = self.plan.root(instruction.operands[0])
        producer = self.producers.get(root)
        nest = self.nests.get(root)
        lead = nest.lead if nest is not None and nest.kind == "contract" else producer
        if lead is None or not isinstance(lead.operation, MatMul | Composite):
            message = f"k tiles a contraction, and %{root.name} is none"
            requirement = "k on the result of a matmul only"
            yield self._finding(instruction, message, requirement, "LANG-06.1-01", "leave out k")
        elif isinstance(lead.operation, MatMul):
            left = lead.operands[0].type
            assert isinstance(left, Tensor)
            try:
                require_cover(2, tile.k, left.shape[-1], tile.pad)
            except Refusal as refusal:
                yield diagnostic_of(refusal.by(tile), instruction.location)

    def _prefetch(self, instruction: Instruction) -> Iterator[Diagnostic]:
        """Require that an operation that computes reads a prefetched value (AMB-LANG-218)."""
        if not any(not is_alias(use) for use in self._uses(instruction.results[0])):
            message = f"no operation reads %{instruction.results[0].name}"
            remedy = "compute with its result, or leave it out"
            yield self._finding(instruction, message, "a prefetch of what is computed with", "LANG-06.1-04", remedy)

    def _uses(self, value: Value) -> Iterator[Instruction]:
        """Yield the instructions that read a value, directly or through schedule operations."""
        pending = [value]
        while pending:
            read = pending.pop()
            for reader in self.readers.get(read, ()):
                yield reader
                if is_alias(reader) and reader.operands[-1] is read:
                    pending += reader.results

    def _cast(self, instruction: Instruction, cast: LayoutCast) -> Iterator[Diagnostic]:
        """Refuse a cast without a copy unless its producer can write the layout; consumers check it themselves."""
        layout, current = read_layout(cast.to), cast.x.layout
        if cast.materialize or layout == current:
            return
        root = self.plan.root(instruction.operands[0])
        producer = self.producers.get(root)
        if producer is None or layout.name not in producer.operation.layouts:
            maker = f"@{self.function.name}'s caller" if producer is None else producer.operation.short_name
            message = f"{maker} makes %{root.name}, and does not write {layout} itself"
            requirement = "a cast that producer and consumers support, or a materialized copy"
            yield self._finding(instruction, message, requirement, "LANG-06.3-02", "materialize=true", "layouts")

    def _finding(
        self, at: Instruction, message: str, requirement: str, clause: str, remedy: str, category: Category = "schedule"
    ) -> Diagnostic:
        refusal = Refusal(category, message, requirement, clause, remedy)
        operands = tuple(f"%{value.name} is {value.type}" for value in at.operands)
        return diagnostic_of(refusal.by(at.operation), at.location, operands)
