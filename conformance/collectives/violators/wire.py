"""Collectives that round at other places, in another dtype or without permission (collectives spec 2.4, 2.5)."""

from dataclasses import replace

from tessera_reference.abi.status import Failure, Status
from tessera_reference.collectives import compression
from tessera_reference.collectives.compression import Compression, compress
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import cast

from .changes import at, updated

COMBINE = ("all_reduce", "reduce_scatter")


def result_whole(operation, brought, form, collective):
    """Leave results unrounded by the wire."""
    dtype = brought[0].dtype
    carried = [compress(operation, cast(array, dtype.accumulator), form).restored for array in brought]
    return [cast(array, dtype) for array in collective(carried)]


def result_alone(usual, operation, brought, form, collective):
    dtype = brought[0].dtype
    results = collective([cast(array, dtype.accumulator) for array in brought])
    return [cast(compress(operation, result, form).restored, dtype) for result in results]


def added_in_fp32(usual, operation, brought, form, collective):
    dtype, single = brought[0].dtype, DTYPES["fp32"]
    carried = [cast(compress(operation, cast(x, dtype.accumulator), form).restored, single) for x in brought]
    return [cast(compress(operation, array, form).restored, dtype) for array in collective(carried)]


def result_plain(usual, operation, brought, form, collective):
    results = result_whole(operation, brought, form, collective)
    return [cast(cast(result, form.wire), result.dtype) for result in results] if operation in COMBINE else results


def silently_whole(usual, *given):
    try:
        return usual(*given)
    except Failure as failure:
        if failure.status != Status.TESS_ERR_DETERMINISM_VIOLATION:
            raise
        return None


def at_level(level):
    """Return a change of the level under which a wire is read, by the operation and the level."""
    return lambda usual, operation, *given: usual(operation, *given[:-1], level(operation, given[-1]))


def refuses_lossless(usual, operation, buffers, name, qscheme, block, level):
    found = usual(operation, buffers, name, qscheme, block, level)
    if found is None and name is not None and level != "fast":
        raise Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, operation, f"wire {name}", "no wire")
    return found


carried, allowed = at("collectives.operations.over_wire"), at("collectives.operations.read_wire")

VIOLATIONS = [
    carried("COLL-02.5-03", "adds_in_fp32", "adds fp64 data in fp32", added_in_fp32),
    carried("COLL-02.4-05", "result_alone", "rounds the result alone", result_alone),
    carried("COLL-02.4-03", "first_alone", "gives the rounded result to the first rank only",
        lambda usual, *given: [usual(*given)[0], *result_whole(*given)[1:]]),
    at("collectives.compression.cast")("COLL-02.4-05", "rounds_twice", "rounds fp64 data to fp32 and then to the wire",
        lambda usual, x, target: usual(usual(x, DTYPES["fp32"]) if x.dtype.name == "fp64" else x, target)),
    updated("collectives.compression.WIRES", "COLL-02.4-05", "e5m2_for_fp8", "sends fp8_e5m2 for fp8",
        fp8=DTYPES["fp8_e5m2"]),
    updated("collectives.compression.WIRES", "COLL-02.5-01", "sends_fp32", "knows a wire fp32", fp32=DTYPES["fp32"]),
    carried("COLL-02.5-02", "results_without_scales", "sends results without scales", result_plain),
    carried("COLL-02.5-02", "block_is_tensor", "takes a whole tensor for a block",
        lambda usual, operation, brought, form, collective: usual(
            operation, brought, form if form.block is None else replace(form, block=1 << 20), collective)),
    allowed("RT-13-09", "silently_whole", "ignores a lossy wire where none is allowed", silently_whole),
    *(
        allowed("RT-13-09", f"lossy_{one}", f"allows a lossy wire to {one}",
                at_level(lambda operation, level, one=one: "fast" if operation == one else level))
        for one in ("reduce_scatter", "broadcast")
    ),
    allowed("RT-13-09", "lossy_deterministic", "allows a lossy wire under deterministic",
        at_level(lambda operation, level: "strict" if level == "strict" else "fast")),
    allowed("COLL-02.5-01", "refuses_lossless", "refuses a wire that holds the data", refuses_lossless),
    allowed("COLL-02.5-01", "rounds_to_wider", "rounds results to a wire wider than the data first",
        lambda usual, operation, buffers, name, *given: (
            usual(operation, buffers, name, *given) or (name and Compression(compression.WIRES[name])))),
]  # fmt: skip
