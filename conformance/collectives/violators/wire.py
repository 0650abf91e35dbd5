"""Collectives that round at other places, in another dtype or without permission (collectives spec 2.4, 2.5)."""

from dataclasses import replace

from tessera_reference.abi.status import Failure, Status
from tessera_reference.collectives import compression
from tessera_reference.collectives.compression import Compression, compress
from tessera_reference.collectives.operations import over_wire, read_wire
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import cast

from ...ir.violators.changes import changed

COMBINE = ("all_reduce", "reduce_scatter")


def carried(clause, name, description, change):
    """Return a violation with another transfer over the wire."""
    return changed(clause, name, description, ("collectives.operations.over_wire", change))


def allowed(clause, name, description, change):
    """Return a violation that allows other wires."""
    return changed(clause, name, description, ("collectives.operations.read_wire", change))


def result_whole(operation, brought, form, collective):
    """Leave results unrounded by the wire."""
    dtype = brought[0].dtype
    carried = [compress(operation, cast(array, dtype.accumulator), form).restored for array in brought]
    return [cast(array, dtype) for array in collective(carried)]


def result_alone(operation, brought, form, collective):
    dtype = brought[0].dtype
    results = collective([cast(array, dtype.accumulator) for array in brought])
    return [cast(compress(operation, result, form).restored, dtype) for result in results]


def through_fp32(x, target):
    return cast(cast(x, DTYPES["fp32"]), target) if x.dtype.name == "fp64" else cast(x, target)


def added_in_fp32(operation, brought, form, collective):
    dtype, single = brought[0].dtype, DTYPES["fp32"]
    carried = [cast(compress(operation, cast(x, dtype.accumulator), form).restored, single) for x in brought]
    return [cast(compress(operation, array, form).restored, dtype) for array in collective(carried)]


def first_alone(operation, brought, form, collective):
    others = result_whole(operation, brought, form, collective)
    return [over_wire(operation, brought, form, collective)[0], *others[1:]]


def result_plain(operation, brought, form, collective):
    results = result_whole(operation, brought, form, collective)
    return [cast(cast(result, form.wire), result.dtype) for result in results] if operation in COMBINE else results


def one_block(operation, brought, form, collective):
    whole = form if form.block is None else replace(form, block=1 << 20)
    return over_wire(operation, brought, whole, collective)


def silently_whole(operation, buffers, name, qscheme, block, level):
    try:
        return read_wire(operation, buffers, name, qscheme, block, level)
    except Failure as failure:
        if failure.status != Status.TESS_ERR_DETERMINISM_VIOLATION:
            raise
        return None


def but_for(operation_alone):
    """Any wire is allowed to one operation."""

    def read(operation, buffers, name, qscheme, block, level):
        return read_wire(operation, buffers, name, qscheme, block, "fast" if operation == operation_alone else level)

    return read


def under_strict_alone(operation, buffers, name, qscheme, block, level):
    return read_wire(operation, buffers, name, qscheme, block, "strict" if level == "strict" else "fast")


def never(operation, buffers, name, qscheme, block, level):
    found = read_wire(operation, buffers, name, qscheme, block, level)
    if found is None and name is not None and level != "fast":
        raise Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, operation, f"wire {name}", "no wire")
    return found


def always(operation, buffers, name, qscheme, block, level):
    found = read_wire(operation, buffers, name, qscheme, block, level)
    return found or (Compression(compression.WIRES[name]) if name is not None else None)


def with_wires(clause, name, description, **others):
    """Return a violation with other names of wires."""
    return changed(clause, name, description, ("collectives.compression.WIRES", compression.WIRES | others))


VIOLATIONS = [
    carried("COLL-02.5-03", "adds_in_fp32", "adds fp64 data in fp32", added_in_fp32),
    carried("COLL-02.4-05", "result_alone", "rounds the result alone", result_alone),
    carried("COLL-02.4-03", "first_alone", "gives the rounded result to the first rank only", first_alone),
    changed("COLL-02.4-05", "rounds_twice", "rounds fp64 data to fp32 and then to the wire",
        ("collectives.compression.cast", through_fp32)),
    with_wires("COLL-02.4-05", "e5m2_for_fp8", "sends fp8_e5m2 for fp8", fp8=DTYPES["fp8_e5m2"]),
    with_wires("COLL-02.5-01", "sends_fp32", "knows a wire fp32", fp32=DTYPES["fp32"]),
    carried("COLL-02.5-02", "results_without_scales", "sends results without scales", result_plain),
    carried("COLL-02.5-02", "block_is_tensor", "takes a whole tensor for a block", one_block),
    allowed("RT-13-09", "silently_whole", "ignores a lossy wire where none is allowed", silently_whole),
    *(
        allowed("RT-13-09", f"lossy_{one}", f"allows a lossy wire to {one}", but_for(one))
        for one in ("reduce_scatter", "broadcast")
    ),
    allowed("RT-13-09", "lossy_deterministic", "allows a lossy wire under deterministic", under_strict_alone),
    allowed("COLL-02.5-01", "refuses_lossless", "refuses a wire that holds the data", never),
    allowed("COLL-02.5-01", "rounds_to_wider", "rounds results to a wire wider than the data first", always),
]  # fmt: skip
