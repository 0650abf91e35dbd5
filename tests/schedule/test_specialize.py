"""Programs for given shapes: every dimension an extent, or a refusal (LANG-03.1-04, LANG-11-02)."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_reference.ir.diagnostics import Diagnostic, Rejection
from tessera_reference.ir.module import Module
from tessera_reference.ir.verifier import verify
from tessera_reference.language import compile_source
from tessera_reference.schedule.specialize import specialize


def compiled(functions: str) -> Module:
    return compile_source(f"module m {{ {functions} }}", "t.tsr").module


def types_in(module: Module, name: str = "f") -> list[str]:
    """The types of parameters, of everything inside, and of the results."""
    function = module.functions[name]
    values = [*function.parameters, *(value for each in function.body.walk() for value in each.results)]
    return [str(value.type) for value in values] + [str(type_) for type_ in function.results]


def refused(functions: str, **shapes: tuple[int, ...]) -> Diagnostic:
    with pytest.raises(Rejection) as caught:
        specialize(compiled(functions), "f", shapes)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.category, diagnostic.phase) == ("shapes", "lower")
    return diagnostic


def test_dimensions_become_extents() -> None:
    module = compiled("func f(A: tensor<?xKxfp32>, B: tensor<Kx3xfp32>) { return op.concat(A @ B, A @ B, axis=0); }")
    made = specialize(module, "f", {"A": (5, 7), "B": (7, 3)})
    verify(made)
    assert types_in(made) == [
        "tensor<5x7xfp32>",
        "tensor<7x3xfp32>",
        "tensor<5x3xfp32>",
        "tensor<5x3xfp32>",
        "tensor<10x3xfp32>",
        "tensor<10x3xfp32>",
    ]
    assert "?" in types_in(module)[0]


def test_through_regions() -> None:
    source = """
    func f(A: tensor<NxNxfp32>, n: int32) {
      let y: tensor<NxNxfp32> = A;
      for (i in 0 : n) { if (i > 1) { y = y @ A; } else { y = A + A; } }
      while (n < 0) { y = y * 2.0; n = n + 1; }
      return y;
    }
    """
    made = specialize(compiled(source), "f", {"A": (4, 4)})
    verify(made)
    assert not [type_ for type_ in types_in(made) if "N" in type_ or "?" in type_]


def test_a_function_for_each_shape_that_it_is_called_with() -> None:
    source = """
    func f(A: tensor<?x4xfp32>) { return g(A), g(op.concat(A, A, axis=0)), g(A); }
    func g(X: tensor<Nx4xfp32>) { return op.softmax(X, axis=0); }
    """
    made = specialize(compiled(source), "f", {"A": (3, 4)})
    verify(made)
    assert types_in(made, "g")[0] == "tensor<3x4xfp32>"
    assert types_in(made, "g_1")[0] == "tensor<6x4xfp32>"
    called = [each.operation.attributes["callee"] for each in made.functions["f"].body.walk() if each.operation.calls]
    assert called == ["g", "g_1", "g"]


def test_results_have_the_shapes_that_are_returned() -> None:
    made = specialize(
        compiled("func f(A: tensor<?x4xfp32>) -> tensor<?x?xfp32> { return op.transpose(A); }"), "f", {"A": (3, 4)}
    )
    verify(made)
    assert types_in(made)[-1] == "tensor<4x3xfp32>"


def test_defaults_and_known_types_need_no_shape() -> None:
    made = specialize(compiled("func f(A: tensor<2x4xfp32>, s: fp32 = 2.0) { return A * s; }"), "f", {})
    verify(made)


REFUSED = {
    "a parameter without a shape": ("func f(A: tensor<?xfp32>) { return A; }", {}),
    "one name for two extents": ("func f(A: tensor<NxNxfp32>) { return A; }", {"A": (2, 3)}),
    "another extent": ("func f(A: tensor<4xfp32>) { return A; }", {"A": (3,)}),
    "another rank": ("func f(A: tensor<?xfp32>) { return A; }", {"A": (3, 3)}),
    "computed bounds": ("func f(A: tensor<?xfp32>, n: int32) { return A[0:n]; }", {"A": (3,)}),
    "branches of two shapes": (
        "func f(A: tensor<?xfp32>, b: bool) { let y: tensor<?xfp32> = A; "
        "if (b) { y = op.concat(A, A, axis=0); } return y; }",
        {"A": (3,)},
    ),
    "returns of two shapes": (
        "func f(A: tensor<?xfp32>, b: bool) -> tensor<?xfp32> { if (b) { return op.concat(A, A, axis=0); } return A; }",
        {"A": (3,)},
    ),
    "a reshape that does not fit": ("func f(A: tensor<?xfp32>) { return op.reshape(A, shape=[2, 2]); }", {"A": (3,)}),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_no_shape_tells_is_refused(which: str) -> None:
    source, shapes = REFUSED[which]
    refused(source, **shapes)


def test_an_index_that_is_computed_is_fine() -> None:
    made: Any = specialize(compiled("func f(A: tensor<?x2xfp32>, n: int32) { return A[n]; }"), "f", {"A": (3, 2)})
    verify(made)
    assert types_in(made)[-1] == "tensor<2xfp32>"
