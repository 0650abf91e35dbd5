"""Random numbers from a stateless generator (runtime specification, 4.7 and 11; AMB-RT-74)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import packed
from tessera_conformance.chapters.runtime.kit.encoding import values_of as elements_of
from tessera_conformance.chapters.runtime.kit.mesh_session import opened
from tessera_conformance.check import values_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.judging import golden, judge

FLOATS = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "fp32", "fp64"]
STATELESS = {"stableReductions": 1, "deterministic": 1, "rngStateless": 1, "allowFastMath": 0}


@golden("runtime/random")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by the oracle's own generator."""
    judge(impl, check, vector)


def numbers(impl, check, operation, context=None, **attributes):
    """Numbers drawn with these attributes, 64 of fp32 unless they say otherwise."""
    given = {"shape": [64], "dtype": "fp32", "seed": 1, "stream": 0} | attributes
    under = {} if context is None else {"context": context}
    observation = impl.numerics.evaluate(operation=operation, inputs=[], attributes=given, **under)
    return check.returns(observation)["outputs"][0]


@feature("operation-access", "random-numbers")
@clause("RT-04.7-04")
@pytest.mark.parametrize("operation", ["uniform", "normal"])
def test_numbers_do_not_depend_on_what_was_drawn_before(impl, check, operation):
    """The same seed, stream and shape give the same bits, whatever was drawn in between."""
    context = check.returns(impl.runtime.tessInit())["context"]
    check.returns(impl.runtime.tessSetNumericsPolicy(context=context, policy=STATELESS))
    first = numbers(impl, check, operation, context)
    for between in range(4):
        numbers(impl, check, operation, context, seed=between, stream=7, shape=[between + 1])
        check.bits(numbers(impl, check, operation, context), first, "the same numbers again")


@feature("operation-access", "random-numbers")
@clause("RT-04.7-04")
@pytest.mark.parametrize("operation", ["uniform", "normal"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("parts", [2, 3, 8])
def test_numbers_do_not_depend_on_how_a_tensor_is_sharded(impl, check, operation, dtype, parts):
    """Shards that begin at their offset draw the numbers of the whole."""
    whole = numbers(impl, check, operation, shape=[96], dtype=dtype)
    size = 96 // parts
    drawn = [numbers(impl, check, operation, shape=[size], dtype=dtype, offset=size * part) for part in range(parts)]
    check.bits(Tensor(dtype, (96,), b"".join(tensor.data for tensor in drawn)), whole, "the shards, joined")


DRAWS = """module m {
  kernel uniform(y: tensor<64xfp32>) { y = op.uniform() @{shape=[64], seed=5, stream=2}; }
  kernel normal(y: tensor<64xfp32>) { y = op.normal() @{shape=[64], seed=5, stream=2}; }
  kernel other(y: tensor<64xfp32>) { y = op.uniform() @{shape=[64], seed=6, stream=2}; }
}
"""


@feature("random-numbers", "random-ops")
@clause("RT-04.7-04")
@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_launches_draw_the_same_numbers_again(impl, check, name):
    """The second launch of a context, one after another kernel has drawn, and the first of another context."""
    session = opened(impl, check)
    session.set_policy(STATELESS)
    module = session.load(DRAWS)
    first = drawn(session, module, name)
    check.true(len(set(first)) > 32, "the numbers differ among each other", first)
    check.equal(drawn(session, module, name), first, "what the second launch draws")
    check.true(drawn(session, module, "other") != first, "another seed draws other numbers", first)
    check.equal(drawn(session, module, name), first, "what is drawn after another kernel")
    fresh = opened(impl, check)
    fresh.set_policy(STATELESS)
    check.equal(drawn(fresh, fresh.load(DRAWS), name), first, "what another context draws")


def drawn(session, module, name):
    """The fp32 numbers that a launch of a kernel leaves in new memory."""
    pointer = session.upload(bytes(256))
    session.launch(session.kernel_of(module, name), packed(("ptr", pointer)))
    return elements_of("fp32", session.download(pointer, 256))


@feature("operation-access", "random-numbers", "descriptor-access")
@clause("RT-11-03", "RT-11-04")
@pytest.mark.parametrize("field", ["seed", "stream"])
@pytest.mark.parametrize("operation", ["uniform", "normal"])
def test_another_seed_or_stream_gives_other_numbers(impl, check, operation, field):
    """At most a few of 64 numbers of 2**24 values coincide by chance, and none need coincide where seeds differ."""
    first, second = (numbers(impl, check, operation, **{field: value}) for value in (3, 4))
    same = sum(a == b for a, b in zip(first.words().tolist(), second.words().tolist(), strict=True))
    check.true(same <= 4, f"numbers of two values of {field} differ", f"{same} of 64 are equal")


@feature("operation-access", "random-numbers")
@clause("RT-04.7-04")
@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_numbers_lie_in_the_half_open_interval(impl, check, dtype):
    """From 0, which is included, to 1, which is not; with a mean near one half."""
    values = values_of(numbers(impl, check, "uniform", shape=[4096], dtype=dtype))
    check.true(all(value is not None and 0 <= value < 1 for value in values), "every number lies in [0, 1)")
    mean = float(sum(values) / len(values))
    check.true(0.42 < mean < 0.55, "the mean is near one half", mean)


@feature("operation-access", "random-numbers")
@clause("RT-04.7-04")
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_dropout_zeroes_about_its_rate_and_scales_the_rest(impl, check, rate):
    """Kept elements are divided by 1 - rate; the share of dropped ones is within five standard deviations."""
    ones = Tensor.from_words("fp32", (4096,), [0x3F800000] * 4096)
    observation = impl.numerics.evaluate(operation="dropout", inputs=[ones], attributes={"rate": rate, "seed": 5})
    values = values_of(check.returns(observation)["outputs"][0])
    dropped = sum(value == 0 for value in values)
    spread = 5 * (rate * (1 - rate) * 4096) ** 0.5
    check.true(abs(dropped - 4096 * rate) <= spread, "the share of dropped elements", dropped)
    kept = {value for value in values if value != 0}
    check.equal(len(kept), 1, "the number of values of kept elements")
    check.true(abs(float(kept.pop()) * (1 - rate) - 1) < 1e-6, "a kept one becomes 1 / (1 - rate)")


@feature("operation-access", "random-numbers")
@clause("RT-04.7-04")
@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32", "fp64"])
def test_normal_numbers_are_spread_as_the_distribution_is(impl, check, dtype):
    """Mean and variance of 4,096 numbers are within five standard deviations, and about a third is beyond 1."""
    actual = values_of(numbers(impl, check, "normal", shape=[4096], dtype=dtype))
    check.true(None not in actual, "every number is finite")
    values = [float(value) for value in actual]
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    beyond = sum(abs(value) > 1 for value in values) / len(values)
    check.true(abs(mean) < 5 / 64, "the mean is near 0", mean)
    check.true(abs(variance - 1) < 5 * (2 / 4096) ** 0.5 + 0.01, "the variance is near 1", variance)
    check.true(abs(beyond - 0.3173) < 5 * 0.0073, "about 31.7 per cent lie beyond 1", beyond)


def kept(impl, check, seed, offset=0, count=1024):
    """Return the positions that a dropout of one half keeps, of so many ones."""
    ones = Tensor.from_words("fp32", (count,), [0x3F800000] * count)
    attributes = {"rate": 0.5, "seed": seed, "offset": offset}
    observation = impl.numerics.evaluate(operation="dropout", inputs=[ones], attributes=attributes)
    return [word != 0 for word in check.returns(observation)["outputs"][0].words().tolist()]


@feature("operation-access", "random-numbers")
@clause("RT-04.7-04", "RT-11-03")
def test_dropout_is_scattered_and_follows_its_seed(impl, check):
    """Each quarter of a tensor keeps about half; two seeds agree in about half; the same seed drops the same."""
    first, other = kept(impl, check, 1), kept(impl, check, 2)
    check.equal(kept(impl, check, 1), first, "what the same seed keeps")
    for quarter in range(4):
        share = sum(first[256 * quarter : 256 * (quarter + 1)])
        check.true(abs(share - 128) <= 40, f"quarter {quarter} keeps about half of its 256", share)
    alike = sum(a == b for a, b in zip(first, other, strict=True))
    check.true(abs(alike - 512) <= 80, "two seeds agree in about half of 1,024", alike)


@feature("operation-access", "random-numbers")
@clause("RT-04.7-04")
@pytest.mark.parametrize("parts", [2, 8])
def test_dropout_does_not_depend_on_how_a_tensor_is_sharded(impl, check, parts):
    """Shards that begin at their offset drop what the whole drops there."""
    size = 1024 // parts
    shards = [keep for part in range(parts) for keep in kept(impl, check, 3, size * part, size)]
    check.equal(shards, kept(impl, check, 3), "what the shards keep, joined")
