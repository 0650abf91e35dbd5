"""Words that are keywords only where the grammar asks for them, and what may stand between them and their bracket."""

from __future__ import annotations

import pytest

from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.language import compile_source, parse


@pytest.mark.parametrize("between", ["", " ", "\n", "/* c */", " // c\n ", "/* a */ /* < */"])
def test_a_comment_may_stand_before_the_bracket(between):
    assert compile_source(f"module m {{ func f(A: tensor{between}<4xfp32>) {{ return A; }} }}")
    assert parse(f"module m {{ func f(a: int32) {{ assert{between}(a == 1); }} }}")


def test_a_comma_before_the_layout_gets_its_own_remedy():
    with pytest.raises(Rejection) as stop:
        parse("module m { func f(A: tensor<2x3xfp32, layout=row_major>) { return A; } }")
    assert "after a semicolon" in stop.value.diagnostics[0].remedy


PROFILES = """module m {{
  func c(x: tensor<4xfp32>) -> tensor<4xfp32> @{{numerics_profile={inner}}} {{ return x; }}
  func b(x: tensor<4xfp32>) -> tensor<4xfp32> {{ return c(x); }}
  func a(x: tensor<4xfp32>) -> tensor<4xfp32> @{{numerics_profile=strict}} {{ return b(x); }}
}}"""


def test_a_looser_profile_is_found_through_a_function_without_one():
    """A strict function reaches a fast one through another that declares nothing (AMB-LANG-69)."""
    assert compile_source(PROFILES.format(inner="strict"))
    with pytest.raises(Rejection) as stop:
        compile_source(PROFILES.format(inner="fast"))
    assert [diagnostic.category for diagnostic in stop.value.diagnostics] == ["numerics"]
