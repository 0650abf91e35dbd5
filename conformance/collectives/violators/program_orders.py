"""Programs and plans whose collectives combine in another order than that of their algorithm (AMB-COLL-96)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tessera_conformance.strength import Violation
from tessera_reference.collectives import plan_execution, programs
from tessera_reference.collectives import programs as program_orders
from tessera_reference.numerics.trees import FOLD, PAIRWISE

from ...ir.violators.changes import changed

ORDER, ALGORITHM, JOINED = program_orders._order, program_orders._algorithm, program_orders.joined_order
REDUCED, BY_ALGORITHM, DECLARED = program_orders.reduced, program_orders._by_algorithm, program_orders.orders
READ_COMPRESSION, AS_SENT, OVER_WIRE = programs.read_compression, programs.as_sent, programs.over_wire


def orders(clause: str, name: str, description: str, member: str, change: Any) -> Violation:
    """Another way to find the order, of programs and plans."""
    return changed(clause, name, description, (program_orders, member, change))


def by(name: str) -> Callable[..., str]:
    return lambda *arguments: name


def auto_by_chunk(operation: Any, size: int, ranks: int) -> str:
    nbytes = operation.chunk_size or size * operation.x.dtype.storage_bytes
    return ALGORITHM(operation, min(size, nbytes // operation.x.dtype.storage_bytes), ranks)


def auto_is_ring(operation: Any, size: int, ranks: int) -> str:
    return ALGORITHM(operation, size, ranks) if operation.algo not in (None, "auto") else "ring"


def sent_whole(operation: Any, contributions: Sequence[Any], collective: Callable[..., Any]) -> Any:
    """Return the results of data that travel as they are, whatever dtype the program names."""
    return collective(contributions)


def combined_alone(operation: Any, contributions: Sequence[Any], collective: Callable[..., Any]) -> Any:
    return (AS_SENT if "op" in operation.attributes else sent_whole)(operation, contributions, collective)


def result_whole(operation: str, brought: Sequence[Any], form: Any, collective: Callable[..., Any]) -> Any:
    return OVER_WIRE("all_gather", brought, form, collective)


def unscaled(function: str, dtype: Any, qscheme: Any = None, block: Any = None) -> Any:
    return READ_COMPRESSION(function, dtype)


def first_tree(name: str, ranks: int) -> Any:
    return DECLARED(name, ranks)[:1] * ranks


def next_tree(name: str, ranks: int) -> Any:
    trees = DECLARED(name, ranks)
    return (*trees[-1:], *trees[:-1])


def in_chunks(op: str, contributions: Sequence[Any], order: Any = None, first: int = 0) -> Any:
    return REDUCED(op, contributions, order, 0)


def as_one(operation: Any, types: Sequence[Any], ranks: int) -> Any:
    if len(types) == 1:
        return JOINED(operation, types, ranks)
    return flat_shares(operation, sum(map(program_orders.elements, types)), ranks)


def rows_first(operation: Any, brought: Any, ranks: int) -> Any:
    return flat_shares(operation, program_orders.elements(brought), ranks)


def flat_shares(operation: Any, size: int, ranks: int) -> Any:
    """Orders of the shares of a flat buffer."""
    places = np.arange(size, dtype=np.int64)
    trees = DECLARED(ALGORITHM(operation, size, ranks), ranks)
    return [(tree, places[program_orders.share_of(size, rank, ranks)]) for rank, tree in enumerate(trees)]


def sums_alone(op: str, contributions: Sequence[Any], order: Any = None, first: int = 0) -> Any:
    return REDUCED(op, contributions, order if op == "sum" else None, first)


def folded(operation: Any, contributions: Sequence[Any]) -> Any:
    if operation.name != "tessera.graph.all_reduce":
        return BY_ALGORITHM(operation, contributions)
    places = np.arange(contributions[0].values.size)
    return (REDUCED(operation.op, contributions, [(FOLD, places)]),) * len(contributions)


def canonical_plans(op: str, contributions: Sequence[Any], order: Any = None, first: int = 0) -> Any:
    return REDUCED(op, contributions, [(PAIRWISE, np.arange(contributions[0].values.size) + first)], first)


VIOLATIONS: list[Violation] = [
    changed("COLL-02.5-01", "program_wires_unused", "ignores the wire of a program under fast", (
        programs, "as_sent", sent_whole
    )),
    changed("COLL-02.5-01", "plan_wires_unused", "ignores the wire of a plan under fast", (
        plan_execution, "as_sent", sent_whole
    )),
    changed("COLL-02.5-01", "program_moves_whole", "takes the wire of a program for what it combines alone", (
        programs, "as_sent", combined_alone
    )),
    changed("COLL-02.5-03", "program_results_whole", "does not round the results of a program to the wire", (
        programs, "over_wire", result_whole
    )),
    changed("COLL-02.5-02", "program_blocks_unscaled", "casts the blocks of a program to the wire without a scale", (
        programs, "read_compression", unscaled
    )),
    changed("LANG-09-05", "canonical_programs", "combines canonically whatever algorithm is declared", (
        programs, "combine_at", lambda level: program_orders.canonically
    )),
    changed("RT-06-04", "canonical_plans", "combines canonically in plans, by algorithms in programs", (
        plan_execution, "reduced", canonical_plans
    )),
    changed("LANG-09-06", "strict_programs_by_algorithm", "combines in the order of algorithms under strict", (
        programs, "combine_at", lambda level: BY_ALGORITHM
    )),
    changed("RT-06-03", "strict_programs_folded", "combines in the order of algorithms under strict", (
        programs, "combine_at", lambda level: BY_ALGORITHM
    )),
    orders("COLL-03.2-04", "programs_by_ring", "takes the order of a ring whatever is named", "_algorithm", by("ring")),
    orders("COLL-08-12", "programs_auto_is_ring", "takes a ring for auto", "_algorithm", auto_is_ring),
    orders("LANG-09-05", "programs_auto_by_chunk", "selects by the bytes of a chunk", "_algorithm", auto_by_chunk),
    orders("RT-06-04", "programs_first_share", "has one order for all shares", "orders", first_tree),
    orders("LANG-09-05", "programs_next_share", "gives shares the orders of others", "orders", next_tree),
    orders("RT-06-04", "programs_flat_parts", "shares out rows where columns are parts", "_order", rows_first),
    orders("COLL-02.1-04", "programs_sums_alone", "combines products canonically", "reduced", sums_alone),
    orders("LANG-09-05", "programs_without_algorithm", "folds what names no algorithm", "_by_algorithm", folded),
    changed("COLL-02.3-01", "plan_chunks_anew", "lets shares begin anew in every chunk", (
        plan_execution, "reduced", in_chunks
    )),
    changed("COLL-02.4-01", "plan_tensors_as_one", "gives fused tensors the order of one", (
        plan_execution, "joined_order", as_one
    )),
]  # fmt: skip
