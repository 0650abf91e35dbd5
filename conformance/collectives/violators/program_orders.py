"""Programs and plans whose collectives combine in another order than their algorithm (AMB-COLL-96)."""

from tessera_reference.collectives import programs
from tessera_reference.collectives.schedules import algorithm
from tessera_reference.graph.collectives import ReduceScatter
from tessera_reference.graph.futures import GroupCollective
from tessera_reference.numerics.collectives import parts, reduced
from tessera_reference.numerics.trees import FOLD

from .changes import at


def auto_by_chunk(usual, operation, size, ranks):
    element = operation.x.dtype.storage_bytes
    return usual(operation, min(size, (operation.chunk_size or size * element) // element), ranks)


def rows_first(usual, operation, contributions):
    plain = operation.plain() if isinstance(operation, GroupCollective) else operation
    if not isinstance(plain, ReduceScatter) or plain is operation:
        return usual(operation, contributions)
    ranks = len(contributions)
    used = algorithm(programs._algorithm(operation, contributions[0].values.size, ranks), ranks)
    return parts(programs.combined(used, plain.op, "deterministic", (1, 1), contributions), plain.dim, ranks)


def folded(usual, operation, contributions):
    if operation.name != "tessera.graph.all_reduce":
        return usual(operation, contributions)
    return (reduced(operation.op, contributions, FOLD),) * len(contributions)


combining_at, by_algorithm = at("collectives.programs.combine_at"), at("collectives.programs._by_algorithm")
choosing = at("collectives.programs._algorithm")

VIOLATIONS = [
    at("collectives.programs.combine_at")("COLL-02.5-01", "plan_wires_unused",
        "ignores the wire of a plan under fast",
        lambda usual, level: usual("deterministic" if level == "fast" else level)),
    at("collectives.programs.as_sent")("COLL-02.5-01", "program_moves_whole",
        "takes the wire of a program for what it combines alone", lambda usual, operation, contributions: (
            usual if "op" in operation.attributes else programs._by_algorithm)(operation, contributions)),
    at("collectives.programs.over_wire")("COLL-02.5-03", "program_results_whole",
        "does not round the results of a program to the wire",
        lambda usual, operation, *given: usual("all_gather", *given)),
    at("collectives.programs.read_compression")("COLL-02.5-02", "program_blocks_unscaled",
        "casts the blocks of a program to the wire without a scale",
        lambda usual, function, dtype, *blocks: usual(function, dtype)),
    combining_at("LANG-09-06", "strict_programs_by_algorithm", "combines in the order of algorithms under strict",
        lambda usual, level: programs._by_algorithm),
    combining_at("RT-06-03", "strict_programs_folded", "combines in the order of algorithms under strict",
        lambda usual, level: programs._by_algorithm),
    choosing("COLL-03.2-04", "programs_by_ring", "takes the order of a ring whatever is named", lambda *given: "ring"),
    choosing("COLL-08-12", "programs_auto_is_ring", "takes a ring for auto", lambda usual, operation, *given: (
        "ring" if operation.algo in (None, "auto") else usual(operation, *given))),
    choosing("LANG-09-05", "programs_auto_by_chunk", "selects by the bytes of a chunk", auto_by_chunk),
    by_algorithm("RT-06-04", "programs_flat_parts", "shares out rows where columns are parts", rows_first),
    at("collectives.programs.combined")("COLL-02.1-04", "programs_sums_alone", "combines products canonically",
        lambda usual, used, op, level, *given: usual(used, op, level if op == "sum" else "strict", *given)),
    by_algorithm("LANG-09-05", "programs_without_algorithm", "folds what names no algorithm", folded),
]  # fmt: skip
