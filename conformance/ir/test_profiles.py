"""Numerics profiles as attributes (language spec, sections 2, 4, 5.3 and 10)."""

import pytest

from tessera_conformance.chapters.ir.kit.programs import value_of
from tessera_conformance.dsl import func, module, program, tensor_of
from tessera_conformance.marks import clause, level
from tessera_conformance.protocol import Returned

PROFILES = [
    pytest.param("fast", marks=clause("LANG-10-08")),
    pytest.param("deterministic", marks=clause("LANG-10-09")),
    pytest.param("strict", marks=clause("LANG-10-10")),
]
BIG = 2.0**24


def product(attributes, length):
    """A func that multiplies a row by a column, under an attribute block."""
    return program(
        "return A @ B;",
        parameters=f"A: tensor<1x{length}xfp32>, B: tensor<{length}x1xfp32>",
        result="tensor<1x1xfp32>",
        attributes=attributes,
    )


@clause("LANG-02-07", "LANG-05.3-06")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("spelling", ['"{}"', "{}"], ids=["string", "identifier"])
def test_a_numerics_profile_is_accepted(impl, check, profile, spelling):
    """The attribute numerics_profile of a func takes the three profiles; exact results are the same in each."""
    source = product("{numerics_profile=" + spelling.format(profile) + "}", 3)
    row, column = tensor_of("fp32", [[1, 2, 3]]), tensor_of("fp32", [[4], [5], [6]])
    check.bits(value_of(impl, check, source, A=row, B=column), tensor_of("fp32", [[32]]))


@clause("LANG-10-04", "LANG-02-07", "LANG-05.3-06")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pytest.param('"fast"', '"faster"', id="longer"),
        pytest.param('"fast"', '"FAST"', id="capitals"),
        pytest.param('"strict"', '"stric"', id="shorter"),
        pytest.param('"deterministic"', '"determined"', id="other-word"),
        pytest.param('"strict"', '""', id="empty"),
        pytest.param('"strict"', "1", id="number"),
        pytest.param("strict", "loose", id="identifier"),
        pytest.param("strict", "[strict]", id="list"),
    ],
)
def test_another_numerics_profile_is_refused(impl, check, legal, illegal):
    """Only fast, deterministic and strict are profiles."""
    check.accepts(impl.language.verify(source=program("return;", attributes="{numerics_profile=" + legal + "}")))
    check.rejects(
        impl.language.verify(source=program("return;", attributes="{numerics_profile=" + illegal + "}")),
        category=("numerics", "types"),
    )


@clause("LANG-05.3-06", "LANG-01-07")
@pytest.mark.parametrize("profile", ["fast", "deterministic", "strict"])
def test_the_numerics_profile_is_kept_in_graph_ir(impl, check, profile):
    """The printed IR carries the attribute numerics_profile with its value."""
    lowered = check.accepts(impl.language.lower(source=product('{numerics_profile="' + profile + '"}', 3), to="graph"))
    text = "".join(lowered["text"].split()).replace('"', "")
    check.true(f"numerics_profile={profile}" in text, "the attribute is printed", lowered["text"])


@clause("LANG-04-04")
@level("strict", "deterministic")
@pytest.mark.parametrize("profile", ["deterministic", "strict"])
def test_a_stricter_profile_gives_the_same_bits_on_every_run(impl, check, profile):
    """A sum whose value depends on its order is the same in ten runs."""
    source = product('{numerics_profile="' + profile + '"}', 64)
    row = tensor_of("fp32", [[(-1.0) ** (index // 3) * 2.0 ** (index * 7 % 29) for index in range(64)]])
    column = tensor_of("fp32", [[1 + index % 5] for index in range(64)])
    first = value_of(impl, check, source, A=row, B=column)
    for _ in range(9):
        check.bits(value_of(impl, check, source, A=row, B=column), first, "the same bits again")


@clause("LANG-04-04")
@level("strict")
@pytest.mark.parametrize(
    ("row", "total"),
    [([BIG, 1, 1, -BIG], 0), ([1, BIG, -BIG, 0], 0), ([BIG, -BIG, 1, 1], 2)],
    ids=["lost", "early", "kept"],
)
@pytest.mark.parametrize("asked", ["strict", "deterministic", "fast"])
def test_the_profile_of_a_function_counts_and_not_that_of_the_run(impl, check, row, total, asked):
    """A func marked strict adds in ascending order even where the run asks for another profile (AMB-LANG-111).

    Of 2**24 + 1 + 1 - 2**24 that order keeps nothing, a pairwise tree one and the backward order two.
    """
    source = product('{numerics_profile="strict"}', 4)
    inputs = {"A": tensor_of("fp32", [row]), "B": tensor_of("fp32", [[1]] * 4)}
    observation = impl.language.execute(source=source, function="f", inputs=inputs, level=asked)
    outputs = check.returns(observation)["outputs"]
    check.equal(len(outputs), 1, "the number of returned values")
    check.bits(outputs[0], tensor_of("fp32", [[total]]))


@clause("LANG-10-08", "LANG-10-09", "LANG-10-10")
def test_functions_of_a_module_have_their_own_profiles(impl, check):
    """Three functions of one module, each under another profile."""
    source = module(
        *(
            func("return a;", parameters="a: int32", attributes="{numerics_profile=" + profile + "}", name=profile)
            for profile in ("fast", "deterministic", "strict")
        )
    )
    for profile in ("fast", "deterministic", "strict"):
        check.bits(value_of(impl, check, source, profile, a=tensor_of("int32", 3)), tensor_of("int32", 3))


def refuses_or_warns(check, answer, *categories):
    """A contradiction of profiles is refused, in one of the categories; one that is warned of is another reading."""
    warnings = answer.value["warnings"] if isinstance(answer, Returned) else []
    check.reading("AMB-LANG-69", "warnings", any(entry["category"] in categories for entry in warnings))
    check.rejects(answer, category=categories)


@clause("LANG-11-16")
@pytest.mark.parametrize(
    ("caller", "callee"),
    [("strict", "fast"), ("strict", "deterministic"), ("deterministic", "fast")],
    ids=["strict-fast", "strict-deterministic", "deterministic-fast"],
)
def test_a_function_that_calls_a_looser_one_is_refused(impl, check, caller, callee):
    """A profile would not hold if a callee were looser (AMB-LANG-69); the other way round it does."""

    def calling(outer, inner):
        helper = func("return a;", parameters="a: fp32", attributes="{numerics_profile=" + inner + "}", name="helper")
        return module(
            func("return helper(a);", parameters="a: fp32", attributes="{numerics_profile=" + outer + "}"), helper
        )

    check.accepts(impl.language.verify(source=calling(caller, caller)))
    check.accepts(impl.language.verify(source=calling(callee, caller)))
    refuses_or_warns(check, impl.language.verify(source=calling(caller, callee)), "numerics")


@clause("LANG-11-16")
@pytest.mark.parametrize(
    ("caller", "callee"),
    [("strict", "fast"), ("strict", "deterministic"), ("deterministic", "fast")],
    ids=["strict-fast", "strict-deterministic", "deterministic-fast"],
)
def test_a_function_that_calls_a_body_of_a_looser_profile_is_refused(impl, check, caller, callee):
    """The profile at the head of a body is that of its function (AMB-LANG-111), for calls too (AMB-LANG-69)."""

    def calling(outer, inner):
        head = 'numerics.profile("{}");'
        helper = func(head.format(inner), "return a;", parameters="a: fp32", name="helper")
        return module(func(head.format(outer), "return helper(a);", parameters="a: fp32"), helper)

    check.accepts(impl.language.verify(source=calling(caller, caller)))
    check.accepts(impl.language.verify(source=calling(callee, caller)))
    refuses_or_warns(check, impl.language.verify(source=calling(caller, callee)), "numerics")


@clause("LANG-11-13", "LANG-10-02")
@pytest.mark.parametrize("profile", ["strict", "deterministic"])
@pytest.mark.parametrize(
    ("dtype", "canonical", "narrower"), [("bf16", "fp32", "bf16"), ("fp16", "fp32", "fp16"), ("fp64", "fp64", "fp32")]
)
def test_an_accumulator_narrower_than_the_profile_allows_is_refused(impl, check, profile, dtype, canonical, narrower):
    """The attribute accum may state the accumulator there is, and not a narrower one (AMB-LANG-69)."""

    def product_in(accumulator):
        return program(
            f"return op.matmul(A, A) @{{accum={accumulator}}};",
            parameters=f"A: tensor<2x2x{dtype}>",
            attributes="{numerics_profile=" + profile + "}",
        )

    check.accepts(impl.language.verify(source=product_in(canonical)))
    refuses_or_warns(check, impl.language.verify(source=product_in(narrower)), "numerics", "types")


@clause("LANG-11-13", "LANG-10-04")
@pytest.mark.parametrize("place", ["attributes", "head"])
def test_the_profile_of_a_function_is_not_that_of_the_next(impl, check, place):
    """One that is strict stands before one that is fast, whose accumulator is its own (AMB-LANG-69, AMB-LANG-111)."""

    def source(second):
        heads = [f'numerics.profile("{profile}");' for profile in ("strict", second)]
        functions = []
        for name, profile, head in zip("gf", ("strict", second), heads, strict=True):
            accumulator = "bf16" if name == "f" else "fp32"
            body = [*[head] * (place == "head"), f"return op.matmul(A, A) @{{accum={accumulator}}};"]
            attributes = f"{{numerics_profile={profile}}}" if place == "attributes" else ""
            functions.append(func(*body, parameters="A: tensor<2x2xbf16>", attributes=attributes, name=name))
        return module(*functions)

    check.accepts(impl.language.verify(source=source("fast")))
    refuses_or_warns(check, impl.language.verify(source=source("strict")), "numerics", "types")


@clause("LANG-11-13", "LANG-10-04")
@pytest.mark.parametrize("statement", ["if (c) {} else {}", "if (c) {} if (c) {}"], ids=["else", "next"])
def test_the_profile_of_a_branch_ends_with_it(impl, check, statement):
    """A branch after one that is strict has the profile of its func, which is fast (AMB-LANG-69, AMB-LANG-111)."""

    def source(is_strict):
        strict = 'numerics.profile("strict");'
        usual, narrow = (f"X = op.matmul(A, A) @{{accum={accumulator}}};" for accumulator in ("fp32", "bf16"))
        first, last = f"{{ {strict} {usual} }}", f"{{ {strict if is_strict else ''} {narrow} }}"
        body = ["let X: tensor<2x2xbf16> = A;", statement.replace("{}", first, 1).replace("{}", last, 1), "return X;"]
        matrix = "tensor<2x2xbf16>"
        attributes = "{numerics_profile=fast}"
        return program(*body, parameters=f"A: {matrix}, c: bool", result=matrix, attributes=attributes)

    check.accepts(impl.language.verify(source=source(False)))
    refuses_or_warns(check, impl.language.verify(source=source(True)), "numerics", "types")
