"""Tables of dtype ids that are wrong in one place (runtime specification, Appendix B; AMB-RT-28)."""

from tessera_reference.numerics.formats import DTYPES

from ...ir.violators.changes import changed

IDS = {dtype.name: dtype.abi_id for dtype in DTYPES.values() if dtype.abi_id is not None}


def table(clause, name, description, **changes):
    place = "adapter.ReferenceAdapter.abi_dtype_ids"
    return changed(clause, name, description, (place, lambda self: {"ids": IDS | changes}))


VIOLATORS = [
    *(table(f"RT-19.B-{number:02}", f"{dtype}_elsewhere", f"gives {dtype} the id {number + 100}",
        **{dtype: number + 100}) for dtype, number in IDS.items()),
    table("RT-19.B-05", "tf32_has_an_id", "gives tf32 an id of its own", tf32=14),
]  # fmt: skip
