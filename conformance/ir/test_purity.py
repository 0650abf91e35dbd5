"""Every operation is pure: it leaves its operands alone, and gives what they give (language spec, sections 2.3 and 4).

The operations, their operands and the right bits are those of golden vectors, one of each operation; those that the
language counts as effectful, random numbers, stateful norms and optimizers, are left out.
"""

from __future__ import annotations

import re

import pytest

from tessera_conformance.chapters.ir.kit.one_of_each import expression_of, one_of_each
from tessera_conformance.chapters.ir.kit.programs import evaluate
from tessera_conformance.dsl import program, type_of
from tessera_conformance.marks import clause, level
from tessera_conformance.tensors import Tensor


def renamed(expression, suffix):
    """The expression on other operands, `A_` for `A`."""
    return re.sub(r"\b([A-Z])\b", rf"\g<1>{suffix}", expression)


def computed(name, value):
    """The operand as the result of an operation, where one leaves every number as it is."""
    return name if value.dtype == "bool" else f"-(-{name})"


def backwards(value):
    """The elements in reverse order."""
    size = value.format.word_bytes * value.format.words
    parts = [value.data[first : first + size] for first in range(0, len(value.data), size)]
    return Tensor(value.dtype, value.shape, b"".join(parts[::-1]))


EVERY = one_of_each()


@clause("LANG-02.3-55", "LANG-04-02", "LANG-04-01")
@level("strict", "deterministic")
@pytest.mark.parametrize("vector", EVERY)
def test_operands_can_be_used_again(impl, check, vector):
    """Behind the operation its operands are what they were, computed ones too, and it gives the same once more."""
    inputs, (kind, expression) = vector.call.inputs, expression_of(vector)
    body = [f"let {name}1: {type_of(value)} = {computed(name, value)};" for name, value in inputs.items()]
    body += [f"let R: {kind} = {renamed(expression, '1')};", f"let S: {kind} = {renamed(expression, '1')};"]
    body += [f"let {name}2: {type_of(value)} = {computed(name, value)};" for name, value in inputs.items()]
    body += [f"return R, S, {', '.join(f'{name}, {name}1, {name}2' for name in inputs)};"]
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items())
    first, second, *operands = evaluate(impl, check, program(*body, parameters=parameters), **inputs)
    check.equal(len(operands), 3 * len(inputs), "the number of operands")
    for place, (name, value) in enumerate(inputs.items()):
        given, made, again = operands[3 * place : 3 * place + 3]
        check.bits(given, value, f"the argument {name} behind the operation")
        check.bits(made, again, f"the computed operand {name} behind the operation")
    check.bits(second, first, "the operation once more on the same operands")
    if impl.level == "strict":
        check.bits(first, vector.expected[0], "the frozen bits")


@clause("LANG-02.3-55", "LANG-04-01")
@level("strict", "deterministic")
@pytest.mark.parametrize("vector", EVERY)
def test_an_operation_keeps_nothing_of_other_operands(impl, check, vector):
    """Beside a call on other operands, and after one, the operation gives what it gives alone."""
    inputs, (_, expression) = vector.call.inputs, expression_of(vector)
    others = {name: backwards(value) for name, value in inputs.items()}
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items())
    alone = program(f"return {expression};", parameters=parameters)
    beside = program(
        f"return {expression}, {renamed(expression, '_')}, {expression};",
        parameters=f"{parameters}, {renamed(parameters, '_')}",
    )
    (first,) = evaluate(impl, check, alone, **inputs)
    (other,) = evaluate(impl, check, alone, **others)
    (again,) = evaluate(impl, check, alone, **inputs)
    check.bits(again, first, "after a call on other operands")
    actual = evaluate(impl, check, beside, **inputs, **{f"{name}_": value for name, value in others.items()})
    check.equal(len(actual), 3, "the number of results")
    for value, expected in zip(actual, (first, other, first), strict=True):
        check.bits(value, expected, "beside a call on other operands")
