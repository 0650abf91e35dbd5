"""Programs and plans whose collectives combine in another order than their algorithm (AMB-COLL-96)."""

from tessera_reference.collectives import programs
from tessera_reference.collectives.plan_execution import Exchange
from tessera_reference.collectives.plan_execution import _Run as Run
from tessera_reference.collectives.schedules import algorithm
from tessera_reference.graph.collectives import ReduceScatter
from tessera_reference.graph.futures import GroupCollective
from tessera_reference.numerics.collectives import reduced
from tessera_reference.numerics.trees import FOLD

from ...ir.violators.changes import changed

ALGORITHM, COMBINED, BY_ALGORITHM = programs._algorithm, programs.combined, programs._by_algorithm
READ_COMPRESSION, AS_SENT, OVER_WIRE = programs.read_compression, programs.as_sent, programs.over_wire
AT, RESULTS, EXCHANGE = programs.combine_at, Exchange.results, Run._exchange


def orders(clause, name, description, member, change):
    """Return a violation that determines the order of programs and plans differently."""
    return changed(clause, name, description, (programs, member, change))


def by(name):
    return lambda *arguments: name


def auto_by_chunk(operation, size, ranks):
    nbytes = operation.chunk_size or size * operation.x.dtype.storage_bytes
    return ALGORITHM(operation, min(size, nbytes // operation.x.dtype.storage_bytes), ranks)


def auto_is_ring(operation, size, ranks):
    return ALGORITHM(operation, size, ranks) if operation.algo not in (None, "auto") else "ring"


def combined_alone(operation, contributions):
    return (AS_SENT if "op" in operation.attributes else BY_ALGORITHM)(operation, contributions)


def sums_alone(used, op, level, partials, inputs):
    return COMBINED(used, op, level if op == "sum" else "strict", partials, inputs)


def rows_first(operation, contributions):
    plain = operation.plain() if isinstance(operation, GroupCollective) else operation
    if not isinstance(plain, ReduceScatter) or plain is operation:
        return BY_ALGORITHM(operation, contributions)
    ranks = len(contributions)
    used = algorithm(ALGORITHM(operation, contributions[0].values.size, ranks), ranks)
    return plain.distribute(COMBINED(used, plain.op, "deterministic", (1, 1), contributions), ranks)


def folded(operation, contributions):
    if operation.name != "tessera.graph.all_reduce":
        return BY_ALGORITHM(operation, contributions)
    return (reduced(operation.op, contributions, FOLD),) * len(contributions)


VIOLATIONS = [
    changed("COLL-02.5-01", "plan_wires_unused", "ignores the wire of a plan under fast",
        ("collectives.plan_execution.combine_at", lambda level: AT("deterministic" if level == "fast" else level))),
    changed("COLL-02.5-01", "program_moves_whole", "takes the wire of a program for what it combines alone",
        ("collectives.programs.as_sent", combined_alone)),
    changed("COLL-02.5-03", "program_results_whole", "does not round the results of a program to the wire",
        ("collectives.programs.over_wire",
        lambda operation, brought, form, collective: OVER_WIRE("all_gather", brought, form, collective))),
    changed("COLL-02.5-02", "program_blocks_unscaled", "casts the blocks of a program to the wire without a scale",
        ("collectives.programs.read_compression",
        lambda function, dtype, qscheme=None, block=None: READ_COMPRESSION(function, dtype))),
    changed("LANG-09-06", "strict_programs_by_algorithm", "combines in the order of algorithms under strict",
        ("collectives.programs.combine_at", lambda level: BY_ALGORITHM)),
    changed("RT-06-03", "strict_programs_folded", "combines in the order of algorithms under strict",
        ("collectives.programs.combine_at", lambda level: BY_ALGORITHM)),
    orders("COLL-03.2-04", "programs_by_ring", "takes the order of a ring whatever is named", "_algorithm", by("ring")),
    orders("COLL-08-12", "programs_auto_is_ring", "takes a ring for auto", "_algorithm", auto_is_ring),
    orders("LANG-09-05", "programs_auto_by_chunk", "selects by the bytes of a chunk", "_algorithm", auto_by_chunk),
    orders("RT-06-04", "programs_flat_parts", "shares out rows where columns are parts", "_by_algorithm", rows_first),
    orders("COLL-02.1-04", "programs_sums_alone", "combines products canonically", "combined", sums_alone),
    orders("LANG-09-05", "programs_without_algorithm", "folds what names no algorithm", "_by_algorithm", folded),
]  # fmt: skip
