"""Signatures and arguments that the seed of a run draws, against the rule of the text (runtime specification, 10.1)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.abi.kit.parameter_buffers import buffer, layout, signature
from tessera_conformance.fuzz.drawn import chooser_of, judge_question
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.parameter_buffers import SIZES

pytestmark = feature("parameter-layout")

DRAWS = 12
VALUES = {
    "ptr": lambda choose: choose.below(1 << 48),
    "int8": lambda choose: choose.below(256) - 128,
    "int16": lambda choose: choose.below(1 << 16) - (1 << 15),
    "int32": lambda choose: choose.below(1 << 32) - (1 << 31),
    "int64": lambda choose: choose.below(1 << 50) - (1 << 49),
    "fp32": lambda choose: (choose.below(1 << 20) - (1 << 19)) / 64,
    "fp64": lambda choose: (choose.below(1 << 40) - (1 << 39)) / 1024,
    "bool": lambda choose: choose.chance(2),
}
"""The value of an argument by its type."""


def types(choose, known):
    """The types of up to fourteen arguments."""
    return [choose.pick(tuple(known)) for _ in range(choose.between(1, 14))]


def text_of(chosen):
    """A signature of arguments of these types."""
    return signature(*((f"x{place}", type_) for place, type_ in enumerate(chosen)))


@clause("RT-10.1-01", "RT-10.1-03", "RT-10.1-04")
def test_a_drawn_signature_has_the_layout_of_the_rule(impl, check):
    """Twelve drawn signatures of all types have the offsets and sizes of the rule."""
    choose = chooser_of(impl, "abi/layout")
    for _ in range(DRAWS):
        judge_question(impl, check, layout(text_of(types(choose, SIZES))))


@clause("RT-10.1-01", "RT-10.1-02")
@pytest.mark.parametrize("part", range(2))
def test_drawn_arguments_have_the_bytes_of_the_rule(impl, check, part):
    """Pointers, integers, bools and floats that are exact in their type."""
    choose = chooser_of(impl, f"abi/buffer/{part}")
    for _ in range(DRAWS):
        chosen = types(choose, VALUES)
        judge_question(impl, check, buffer(text_of(chosen), [VALUES[type_](choose) for type_ in chosen]))
