"""The plans that follow from collectives: what is told of each, and what stands once (AMB-COLL-85, -86)."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_reference.abi.fatbin import CollectivePlan, read
from tessera_reference.compilation.images import compile_module

TEXT = """"builtin.module"() ({{
  "tessera.graph.mesh"() {{sym_name = "g", axes = ["dp", "tp"], shape = [2, 3]}} : () -> ()
  "tessera.graph.kernel"() ({{
  ^bb0(%x: tensor<6xfp32>):
    {lines}
    "tessera.graph.return"(%x) : (tensor<6xfp32>) -> ()
  }}) {{sym_name = "k", function_type = (tensor<6xfp32>) -> (tensor<6xfp32>)}} : () -> ()
}}) {{sym_name = "m"}} : () -> ()
"""


def planned(*lines: str) -> tuple[CollectivePlan, ...]:
    image = compile_module(TEXT.format(lines="\n    ".join(lines)), ["sm_90"], at="graph")
    return read(image).metadata.collective_plans


def issue(name: str, attributes: str) -> str:
    return f'{name} = tessera.collective.all_reduce %x : tensor<6xfp32> {{op="sum", {attributes}}}'


def test_collectives_of_a_function_that_are_alike_have_one_plan() -> None:
    first, last = planned(issue("%a", 'axis="dp"'), issue("%b", 'axis="tp"'), issue("%c", 'axis="dp"'))
    assert (first.axis, last.axis, first.function, first.bytes) == ("dp", "tp", "k", 24)


@pytest.mark.parametrize(
    ("written", "kept"),
    [("7", 7), ('"high"', "high"), ("true", "true"), ("[1, 2.5]", "[1, 2.5]"), ("18446744073709551616 : i66", None)],
)
def test_what_has_no_meaning_is_kept_as_it_is_written(written: str, kept: Any) -> None:
    (found,) = planned(issue("%a", f'axis="dp", priority={written}'))
    assert found.priority == (written if kept is None else kept)


def test_a_collective_in_a_branch_has_its_plan() -> None:
    source = """module m {
      mesh g = mesh<axes=[dp], shape=[2]>;
      kernel k(x: tensor<2xfp32>) { if (x[0] > 0.0) { x = dist.all_reduce(x, axis=dp, op="sum"); } }
    }"""
    (found,) = read(compile_module(source, ["sm_90"])).metadata.collective_plans
    assert found == CollectivePlan("all_reduce", "dp", "direct", "default", "k", bytes=8)
