"""A profile that a program declares holds for every operation, whatever the run asks for (language spec, 4 and 10).

The level of the run counts only where a program says nothing (AMB-LANG-111). Programs and operands are those of golden
vectors: their frozen bits are what a strict function returns in any run. A deterministic function returns in any run
what it returns in another.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from tessera_conformance.chapters.ir.kit.level_programs import LOWER_LEVELS
from tessera_conformance.chapters.ir.kit.one_of_each import expression_of
from tessera_conformance.chapters.ir.kit.programs import declaring, outputs_in
from tessera_conformance.check import first_difference
from tessera_conformance.dsl import func, module, program, type_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.vectors import load

ORDERED = {
    "ir/matmul": ["*/left-fold", "*/rounded-products", "*/just-beside-a-tie", "*/wide-accumulator", "*/k-13"],
    "ir/reductions": [
        *(
            "*/sum/n-9",
            "*/sum/n-31",
            "*/sum/n-33",
            "*/mean/n-31",
            "*/sum/order",
            "*/sum/accumulator",
            "*/sum/negative-zeros-n-3",
        ),
        *("*/prod/counted", "*/logsumexp/*", "*/sum/counted", "*/mean/counted", "*/sum/axis-0"),
    ],
    "ir/softmax": ["*/tree", "*/n-16"],
    "ir/normalization": ["*/order", "*/n-13", "*/eps-0.1"],
    "ir/fused_attention": ["*/l-16", "*/causal-7"],
    "ir/stateful": ["*/batch-norm/training/4d"],
    "ir/movement": ["*/scatter_add/order", "*/scatter_add/accumulator"],
    "ir/long_reductions": [
        f"*/{operation}/*"
        for operation in "sum mean prod logsumexp softmax layer_norm rms_norm matmul flash_attention fft".split()
    ],
    "ir/fourier": ["*/fft/n-12", "*/ifft/n-31"],
}
"""By topic, the vectors whose bits tell orders and accumulators of a reduction apart."""

APPROXIMATED = {
    "ir/functions": ["*/counted"],
    "ir/activations": ["*/counted"],
    "ir/softmax": ["*/n-7", "*/n-16", "*/small"],
    "ir/stateful": ["*/sgd/default", "*/adamw/settings"],
    "ir/long_reductions": ["fp32/softmax/n-1000", "fp32/logsumexp/n-300"],
}
"""By topic, the vectors whose bits tell approximations of a function apart."""


def vectors(chosen, only=""):
    """The vectors of these topics and names, as parameters; of some dtypes only."""
    return [
        pytest.param(vector, id=f"{topic.rpartition('/')[2]}/{vector.name}", marks=[feature(*vector.features)])
        for topic, patterns in chosen.items()
        for vector in load(topic)
        if any(fnmatchcase(vector.name, pattern) for pattern in patterns) and (not only or vector.name[:4] in only)
    ]


def given_frozen(impl, check, vector):
    """Presume that a strict run returns the frozen bits, which the golden case of the vector judges."""
    outputs = outputs_in(impl, check, vector.call.params["source"], "strict", vector.call.inputs)
    agree = len(outputs) == len(vector.expected) and not any(map(first_difference, outputs, vector.expected))
    check.given(agree, "a strict run returns the frozen bits")


def returns_frozen(impl, check, vector):
    """A strict function returns the frozen bits in runs that ask for less."""
    given_frozen(impl, check, vector)
    source = declaring(vector.call.params["source"], "strict")
    for run in ("fast", "deterministic"):
        outputs = outputs_in(impl, check, source, run, vector.call.inputs)
        check.equal(len(outputs), len(vector.expected), "the number of results")
        for actual, expected in zip(outputs, vector.expected, strict=True):
            check.bits(actual, expected, f"a strict function in a {run} run: the frozen bits")


def returns_the_same(impl, check, vector):
    """A deterministic function returns in every run what it returns in a deterministic one."""
    source = declaring(vector.call.params["source"], "deterministic")
    first = outputs_in(impl, check, source, "deterministic", vector.call.inputs)
    check.equal(len(first), len(vector.expected), "the number of results")
    for run in ("fast", impl.level, "deterministic"):
        for actual, expected in zip(outputs_in(impl, check, source, run, vector.call.inputs), first, strict=True):
            check.bits(actual, expected, f"a deterministic function in a {run} run: the same bits")


@clause("LANG-10-06", "LANG-04-04")
@level("strict")
@pytest.mark.parametrize("vector", vectors(ORDERED))
def test_a_strict_function_keeps_its_order_in_any_run(impl, check, vector):
    """Products, sums, means, norms, attention, transforms and updates of a strict function in a looser run."""
    returns_frozen(impl, check, vector)


@clause("LANG-10-11", "LANG-04-04")
@level("strict")
@pytest.mark.parametrize("vector", vectors(APPROXIMATED))
def test_a_strict_function_keeps_its_approximations_in_any_run(impl, check, vector):
    """Functions, activations, softmax and optimizer steps of a strict function in a looser run."""
    returns_frozen(impl, check, vector)


@clause("LANG-10-05", "LANG-04-04")
@level("strict", "deterministic")
@pytest.mark.parametrize("vector", vectors(ORDERED, ("fp32", "bf16")))
def test_a_deterministic_function_keeps_its_order_in_any_run(impl, check, vector):
    """Its reductions have the same bits in a fast run as in others."""
    returns_the_same(impl, check, vector)


@clause("LANG-10-07", "LANG-04-04")
@level("strict", "deterministic")
@pytest.mark.parametrize("vector", vectors(APPROXIMATED, ("fp32", "bf16")))
def test_a_deterministic_function_keeps_its_approximations_in_any_run(impl, check, vector):
    """Its approximations have the same bits in a fast run as in others."""
    returns_the_same(impl, check, vector)


CALLS = {
    "sum": ("reductions", "fp32/sum/order"),
    "matmul": ("matmul", "fp32/left-fold"),
    "softmax": ("softmax", "fp32/tree"),
}
CALLED = [
    pytest.param(vector, marks=feature(*vector.features), id=operation)
    for operation, (topic, name) in CALLS.items()
    for vector in load(f"ir/{topic}")
    if vector.name == name
]
"""An operation in fp32 whose order shows."""


def call_of(vector):
    """Parameters, arguments, the type of the result and the call of a vector."""
    inputs = vector.call.inputs
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items())
    result, call = expression_of(vector)
    return parameters, ", ".join(inputs), result, call


@clause("LANG-10-06", "LANG-04-04")
@level("strict")
@pytest.mark.parametrize("vector", CALLED)
@pytest.mark.parametrize("run", ["fast", "deterministic"])
def test_a_function_that_declares_nothing_runs_under_its_callers_profile(impl, check, vector, run):
    """A function that a strict one calls is strict, through two calls, in a run that asks for less (AMB-LANG-128)."""
    given_frozen(impl, check, vector)
    parameters, arguments, result, call = call_of(vector)
    source = module(
        func(
            f"return outer({arguments});", parameters=parameters, result=result, attributes="{numerics_profile=strict}"
        ),
        func(f"return inner({arguments});", parameters=parameters, result=result, name="outer"),
        func(f"return {call};", parameters=parameters, result=result, name="inner"),
    )
    (actual,) = outputs_in(impl, check, source, run, vector.call.inputs)
    check.bits(actual, vector.expected[0], f"called by a strict function in a {run} run")


@clause("LANG-10-06", "LANG-04-04", "LANG-02-07")
@feature("annotations")
@level("strict")
@pytest.mark.parametrize("vector", CALLED)
@pytest.mark.parametrize("attributes", ["", "{numerics_profile=fast}"], ids=["bare", "inside-a-fast-func"])
@pytest.mark.parametrize("run", ["fast", "deterministic"])
def test_the_profile_of_a_block_holds_for_its_operations(impl, check, vector, attributes, run):
    """A strict block in a function that is fast, or says nothing, in a run that asks for less (AMB-LANG-111)."""
    given_frozen(impl, check, vector)
    parameters, _, result, call = call_of(vector)
    source = program(
        f'if (true) {{ numerics.profile("strict"); return {call}; }}',
        f"return {call};",
        parameters=parameters,
        result=result,
        attributes=attributes,
    )
    (actual,) = outputs_in(impl, check, source, run, vector.call.inputs)
    check.bits(actual, vector.expected[0], f"in a strict block in a {run} run")


@clause("LANG-10-06", "LANG-04-04", "LANG-08.2-01")
@level("strict")
@pytest.mark.parametrize("vector", CALLED)
@pytest.mark.parametrize("at", [pytest.param(at, marks=feature(f"execute-{at}")) for at in LOWER_LEVELS])
@pytest.mark.parametrize("run", ["fast", "deterministic"])
def test_a_profile_is_kept_through_lowering(impl, check, vector, at, run):
    """A strict function lowered to Schedule, Tile and Target IR and executed there, in a run that asks for less."""
    given_frozen(impl, check, vector)
    source = declaring(vector.call.params["source"], "strict")
    (actual,) = outputs_in(impl, check, source, run, vector.call.inputs, at=at)
    check.bits(actual, vector.expected[0], f"at {at} in a {run} run")
