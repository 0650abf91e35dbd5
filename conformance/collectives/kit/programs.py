"""Texts of Graph IR with collectives that yield futures (collectives specification, 2, 8 and 9)."""

from __future__ import annotations

from collections.abc import Sequence

from tessera_conformance.dsl import tensor_of
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted

FIRST_LINE = 5
"""The line of a program's first operation."""

T = "tensor<8xfp32>"
"""The usual type of a rank's input."""
SUM = 'op="sum"'
BRANCHED = f"%x: {T}, %c: bool"
"""The parameters of a program whose ranks take different branches."""
MISMATCH = "TESS_ERR_COLLECTIVE_MISMATCH"


def program(
    *operations: str, takes: str = "%x: tensor<8xfp32>", gives: str = "tensor<8xfp32>", mesh: str = "dp=4"
) -> str:
    """Return a module with one mesh and the function @f; an entry of `operations` may have several lines."""
    axes, extents = zip(*(axis.split("=") for axis in mesh.split()), strict=True)
    names = ", ".join(f'"{axis}"' for axis in axes)
    types = ", ".join(part.partition(": ")[2] for part in takes.split(", %"))
    return "\n".join(
        [
            '"builtin.module"() ({',
            f'  "tessera.graph.mesh"() {{sym_name = "g", axes = [{names}], shape = [{", ".join(extents)}]}} : () -> ()',
            '  "tessera.graph.func"() ({',
            f"  ^bb0({takes}):",
            *(f"    {operation}" for operation in operations),
            f'  }}) {{sym_name = "f", function_type = ({types}) -> ({gives})}} : () -> ()',
            '}) {sym_name = "m"} : () -> ()',
            "",
        ]
    )


def issue(
    result: str, operand: str, attributes: str = "", collective: str = "all_reduce", type_: str | None = None
) -> str:
    """Return a collective in the form of section 9.1, or with a type before the attributes, as in section 2.1.

    Section 2.1 leaves open if the type is that of the operand (AMB-COLL-15), so most cases state none.
    """
    signature = f" : {type_}" if type_ else ""
    braces = f" {{{attributes}}}" if attributes else ""
    return f"{result} = tessera.collective.{collective} {operand}{signature}{braces}"


def awaits(result: str, future: str) -> str:
    """Return the wait for a future."""
    return f"{result} = tessera.await {future}"


def returns(values: str, types: str = "tensor<8xfp32>") -> str:
    """Return the end of the function."""
    return f'"tessera.graph.return"({values}) : ({types}) -> ()'


def binary(result: str, name: str, a: str, b: str, type_: str = "tensor<8xfp32>") -> str:
    """Return an elementwise operation of two operands of one type."""
    return f'{result} = "tessera.graph.{name}"({a}, {b}) : ({type_}, {type_}) -> {type_}'


def branch(then: Sequence[str], otherwise: Sequence[str], type_: str = "tensor<8xfp32>") -> str:
    """Return an `if` that defines %r by the bool %c: %y of the first operations, or %z of the second."""
    sides = [[f"  {line}" for line in side] for side in (then, otherwise)]
    return "\n    ".join(
        [
            '%r = "tessera.graph.if"(%c) ({',
            *sides[0],
            f'  "tessera.graph.yield"(%y) : ({type_}) -> ()',
            "}, {",
            *sides[1],
            f'  "tessera.graph.yield"(%z) : ({type_}) -> ()',
            f"}}) : (bool) -> {type_}",
        ]
    )


def operations(answer: dict[str, object], name: str) -> list[dict[str, object]]:
    """Return the operations of that name in an answer of `collectives.read`, in order."""
    functions = answer["functions"]
    assert isinstance(functions, list)
    return [operation for function in functions for operation in function["operations"] if operation["name"] == name]


def plain(type_text: str) -> str:
    """Return a type without spaces, its dialect, and a tensor's default layout (AMB-LANG-67)."""
    return type_text.replace(" ", "").replace("!tessera.", "").replace(";layout=row_major", "")


def told(impl, check, text: str) -> dict[str, object]:  # type: ignore[no-untyped-def]
    """Return the meaning of a text; check that the printed form means the same, but for names of values."""
    answer = check.accepts(impl.collectives.read(text=text))
    again = check.accepts(impl.collectives.read(text=answer["text"]), "the printed text is legal")
    check.equal(_numbered(again), _numbered(answer), "what the printed text says")
    found: dict[str, object] = answer
    return found


def _numbered(answer: dict[str, object]) -> list[object]:
    """Return the functions of an answer with numbers as names of results; parameters keep their names."""
    functions = answer["functions"]
    assert isinstance(functions, list)
    found: list[object] = []
    for function in functions:
        results = [name for operation in function["operations"] for name in operation["results"]]
        numbers = {name: str(number) for number, name in enumerate(results)}
        operations = [
            operation
            | {part: [numbers.get(name, name) for name in operation[part]] for part in ("operands", "results")}
            for operation in function["operations"]
        ]
        found.append(function | {"operations": operations})
    return found


def on_ranks(impl, check, text: str, inputs: Sequence[dict[str, Tensor]], **more: str) -> list[list[Tensor]]:  # type: ignore[no-untyped-def]
    """Return the results of @f on each rank."""
    answer = check.returns(impl.collectives.execute(text=text, function="f", ranks=list(inputs), **more))
    return [rank["outputs"] for rank in answer["ranks"]]


def given(rows: Sequence[Tensor], **flags: Sequence[bool]) -> list[dict[str, Tensor]]:
    """Return the inputs of each rank: its row as x, and flags by name, one for each rank."""
    return [
        {"x": row, **{name: tensor_of("bool", values[rank]) for name, values in flags.items()}}
        for rank, row in enumerate(rows)
    ]


def spread(ranks: int, dtype: str = "fp32", count: int = 8, seed: int = 900) -> list[Tensor]:
    """Return data whose sum depends on the order in which ranks are added."""
    return [counted(dtype, (count,), seed=seed + rank, exponents=(-7, 7)) for rank in range(ranks)]
