"""Tables of dtype ids that are wrong in one place (runtime specification, Appendix B; AMB-RT-28)."""

from __future__ import annotations

from tessera_reference.numerics.formats import DTYPES

from ...ir.violators.changes import changed

IDS = {dtype.name: dtype.abi_id for dtype in DTYPES.values() if dtype.abi_id is not None}


def table(clause, name, description, **changes):
    """Return a violation with another id for a dtype in the table."""
    return changed(
        clause, name, description, ("adapter.ReferenceAdapter.abi_dtype_ids", lambda self: {"ids": IDS | changes})
    )


SHIFTED = [
    table(f"RT-19.B-{number:02}", f"{dtype}_elsewhere", f"gives {dtype} the id {number + 100}", **{dtype: number + 100})
    for dtype, number in IDS.items()
]

TF32 = [
    table("RT-19.B-05", "tf32_has_an_id", "gives tf32 an id of its own", tf32=14),
]
