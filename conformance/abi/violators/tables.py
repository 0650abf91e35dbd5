"""Constants and address spaces that are wrong in one place (runtime specification, 4.1, 4.4, 4.6, 6, 9)."""

from tessera_reference.abi.status import constants

from ...ir.violators.changes import changed, wrapped

CONSTANTS = constants()
CLAUSES = {
    **dict(zip(CONSTANTS, (f"RT-04.1-{number:02}" for number in range(3, 15)), strict=False)),
    "TESS_MEM_GLOBAL": "RT-04.4-01",
    "TESS_MEM_PINNED_HOST": "RT-04.4-02",
    **{f"TESS_COPY_{kind}": f"RT-04.4-{number:02}" for number, kind in enumerate(("H2D", "D2H", "D2D"), 7)},
    **{f"TESS_COLL_{operator}": f"RT-04.6-{number:02}" for number, operator in enumerate(("SUM", "MAX", "MIN"), 1)},
    "TESS_LAUNCH_DEFAULT": "RT-06-07",
    "TESS_LAUNCH_DETERMINISTIC": "RT-06-08",
    "TESS_LAUNCH_CAPTURE": "RT-06-10",
    "TESS_LAUNCH_PERSISTENT": "RT-06-12",
    "TESS_LAUNCH_LOW_LATENCY": "RT-06-14",
}


def constant(name, slug, description, **changes):
    """Return a violation with other values of constants, or without those whose value is None."""
    table = {constant: value for constant, value in (CONSTANTS | changes).items() if value is not None}
    place = "adapter.ReferenceAdapter.abi_constants"
    return changed(CLAUSES[name], slug, description, (place, lambda self: {"constants": table}))


def renumbered(clause, purpose, number, *columns):
    """Return a violation with another number of a space in one backend, or in every column."""
    numbers = dict.fromkeys(columns or ("number", "llvm", "nvvm", "rocdl"), number)

    def spaces(usual, self):
        return {"spaces": [row | numbers if row["purpose"] == purpose else row for row in usual(self)["spaces"]]}

    name, description = f"{purpose}_is_{number}", f"puts {purpose} memory into space {number}"
    if columns:
        name, description = f"{purpose}_{columns[0]}", f"gives {purpose} memory the number {number} in {columns[0]}"
    return wrapped(clause, name, description, "adapter.ReferenceAdapter.abi_address_spaces", spaces)


VIOLATORS = [
    *(constant(name, f"{name.lower()}_elsewhere", f"gives {name} the value {value + 64}", **{name: value + 64})
        for name, value in CONSTANTS.items()),
    *(constant(name, f"no_{name.lower()}", f"leaves {name} out", **{name: None})
        for name in ("TESS_COPY_D2D", "TESS_LAUNCH_LOW_LATENCY")),
    renumbered("RT-09-01", "generic", 2),
    renumbered("RT-09-02", "global", 2),
    renumbered("RT-09-04", "constant", 6),
    renumbered("RT-09-05", "local", 6),
    renumbered("RT-09-03", "shared", 2, "rocdl"),
    renumbered("RT-09-09", "constant", 2, "nvvm"),
]  # fmt: skip
