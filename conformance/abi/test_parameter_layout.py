"""The places of a kernel's arguments in its parameter buffer (runtime specification, 9 and 10.1)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.abi.kit.parameter_buffers import SAMPLE, layout_of, signature
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.parameter_buffers import SIZES, Place, by_the_rule
from tessera_conformance.protocol import Returned

pytestmark = feature("parameter-layout")

TYPES = [pytest.param(type_, size, id=type_) for type_, size in SIZES.items()]
DTYPES = {name: size for name, size in SIZES.items() if name != "ptr"}


def places(impl, check, text):
    """Name, type, offset and size of each argument."""
    return layout_of(impl, check, text).places


# The sample of the specification


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        *(pytest.param(name, 8 * i, marks=clause("RT-10.1-08"), id=name) for i, name in enumerate("QKVO")),
        *(pytest.param(name, 32 + 4 * i, marks=clause("RT-10.1-09"), id=name) for i, name in enumerate("BHLD")),
        pytest.param("scale", 0x30, marks=clause("RT-10.1-10"), id="scale"),
    ],
)
def test_the_arguments_of_the_sample_have_the_offsets_of_the_specification(impl, check, name, offset):
    """flash_attention: four pointers from 0x00, four ints from 0x20, a float at 0x30."""
    actual = {place.name: place.offset for place in places(impl, check, SAMPLE)}
    check.equal(actual.get(name), offset, f"the offset of {name}")


@clause("RT-10.1-11")
def test_the_buffer_of_the_sample_has_0x38_bytes(impl, check):
    """Nine arguments that end at 0x34 make a buffer of 0x38 bytes."""
    layout = layout_of(impl, check, SAMPLE)
    check.equal((layout.end_of_last_argument, layout.size), (0x34, 0x38), "where the arguments end, and the buffer")


@clause("RT-10.1-12")
def test_no_argument_of_the_sample_lies_in_its_padding(impl, check):
    """Bytes 0x34 to 0x37 belong to nothing."""
    owned = {place.offset + i for place in places(impl, check, SAMPLE) for i in range(place.size)}
    check.equal(sorted(set(range(0x38)) - owned), [0x34, 0x35, 0x36, 0x37], "the bytes that no argument has")


@clause("RT-10.1-05", "RT-10.1-06", "RT-10.1-07")
def test_the_arguments_of_the_sample_have_the_types_of_the_specification(impl, check):
    """A star makes a pointer of 8 bytes; int is int32 and float is fp32, of 4 bytes."""
    actual = [(place.name, place.type, place.size) for place in places(impl, check, SAMPLE)]
    expected = [(name, "ptr", 8) for name in "QKVO"] + [(name, "int32", 4) for name in "BHLD"]
    check.equal(actual, [*expected, ("scale", "fp32", 4)], "names, types and sizes")


# Sizes


@clause("RT-10.1-05")
@pytest.mark.parametrize("declaration", ["x*", "float* x", "int64* x", "bf16* x"])
def test_a_pointer_has_eight_bytes(impl, check, declaration):
    """A pointer to any type has eight bytes; its name may come before the star or after it."""
    check.equal(places(impl, check, f"k({declaration})"), (Place("x", "ptr", 0, 8),), "the argument")


@pytest.mark.parametrize(
    ("spelling", "dtype", "size"),
    [
        pytest.param("int", "int32", 4, marks=clause("RT-10.1-06"), id="int"),
        pytest.param("int32", "int32", 4, marks=clause("RT-10.1-06"), id="int32"),
        pytest.param("float", "fp32", 4, marks=clause("RT-10.1-07"), id="float"),
        pytest.param("fp32", "fp32", 4, marks=clause("RT-10.1-07"), id="fp32"),
        pytest.param("double", "fp64", 8, marks=clause("RT-10.1-03"), id="double"),
    ],
)
def test_a_type_name_of_c_stands_for_the_dtype_of_its_width(impl, check, spelling, dtype, size):
    """int, float and double of C are the dtypes of their widths."""
    check.equal(places(impl, check, f"k({spelling} x)"), (Place("x", dtype, 0, size),), "the argument")


@clause("RT-10.1-01", "RT-10.1-03")
@pytest.mark.parametrize(("type_", "size"), TYPES)
def test_an_argument_has_the_size_of_its_type(impl, check, type_, size):
    """Every dtype that has an id may be an argument: 1, 2, 4, 8 or 16 bytes (AMB-RT-54, AMB-RT-56)."""
    check.equal(places(impl, check, signature(("x", type_))), (Place("x", type_, 0, size),), "the argument")


# Alignment


@clause("RT-09-06", "RT-10.1-03")
@pytest.mark.parametrize(("type_", "size"), [type_ for type_ in TYPES if type_.values[1] <= 8])
def test_a_scalar_is_aligned_to_its_own_size(impl, check, type_, size):
    """Behind a single byte it begins at the next multiple of its size."""
    actual = places(impl, check, signature(("a", "int8"), ("x", type_)))
    check.equal(actual[-1], Place("x", type_, size, size), "the argument behind a byte")


@clause("RT-10.1-03")
@pytest.mark.parametrize("type_", ["complex64", "complex128"])
def test_an_argument_is_never_aligned_to_more_than_eight(impl, check, type_):
    """A complex number of 8 bytes is aligned to 8, where C has 4, and so is one of 16 (AMB-RT-15, AMB-RT-54)."""
    actual = places(impl, check, signature(("a", "ptr"), ("b", "int8"), ("x", type_), ("c", "int8")))
    check.equal([place.offset for place in actual], [0, 8, 16, 16 + SIZES[type_]], "the offsets")


@clause("RT-10.1-03")
@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("second", SIZES)
def test_padding_before_an_argument_is_the_least(impl, check, first, second):
    """Any type behind any other: at the first aligned place that is free."""
    arguments = [("a", first), ("b", second), ("c", first)]
    expected = by_the_rule(arguments).places
    check.equal(places(impl, check, signature(*arguments)), expected, "the arguments")


# The whole buffer


@clause("RT-10.1-04")
@pytest.mark.parametrize("count", range(1, 18))
def test_the_size_is_rounded_up_to_eight(impl, check, count):
    """Arguments of 1 to 17 bytes take 8, 16 or 24, where C would leave a structure of bytes as it is (AMB-RT-54)."""
    layout = layout_of(impl, check, signature(*((f"a{i}", "int8") for i in range(count))))
    expected = (count, (count + 7) // 8 * 8)
    check.equal((layout.end_of_last_argument, layout.size), expected, "where the arguments end, and the buffer")


@clause("RT-10.1-01", "RT-10.1-04")
def test_a_kernel_without_arguments_has_an_empty_buffer(impl, check):
    """The buffer of a kernel without arguments has no bytes."""
    layout = layout_of(impl, check, "k()")
    check.equal((layout.places, layout.end_of_last_argument, layout.size), ((), 0, 0), "the layout")


@clause("RT-09-07")
@pytest.mark.parametrize("arguments", ["", "int8 a", "x*, int n", "complex128 z"])
def test_the_buffer_is_aligned_to_eight(impl, check, arguments):
    """The alignment of every buffer is eight or a multiple of eight."""
    alignment = layout_of(impl, check, f"k({arguments})").alignment
    check.true(alignment >= 8 and alignment % 8 == 0, "a multiple of eight", alignment)


@clause("RT-10.1-13")
@pytest.mark.parametrize("arguments", [("int n", "x*"), ("float s", "int8 b", "x*", "double d"), ("y*", "int n", "x*")])
def test_arguments_keep_their_declared_order(impl, check, arguments):
    """Scalars stay before pointers and small ones before large ones where they are declared so (AMB-RT-19)."""
    actual = places(impl, check, f"k({', '.join(arguments)})")
    names = [argument.split()[-1].rstrip("*") for argument in arguments]
    check.equal([place.name for place in actual], names, "the names")
    offsets = [place.offset for place in actual]
    check.equal(offsets, sorted(offsets), "the offsets, which rise")


@clause("RT-10.1-01")
@pytest.mark.parametrize("seed", range(8))
def test_many_arguments_share_one_buffer(impl, check, seed):
    """Forty arguments of mixed types do not overlap, are all there, and have nothing but padding between them."""
    types = list(SIZES)
    arguments = [(f"a{i}", types[(i * i * 5 + 3 * i * (seed + 1) + seed) % len(types)]) for i in range(40)]
    layout, expected = layout_of(impl, check, signature(*arguments)), by_the_rule(arguments)
    check.equal(layout.places, expected.places, "the arguments")
    check.equal((layout.end_of_last_argument, layout.size), (expected.end_of_last_argument, expected.size), "the end")


# What is no signature


@clause("RT-10.1-01")
@pytest.mark.parametrize(
    "text",
    [
        "k(int n, int n)",
        "k(struct point p)",
        "k(int n[4])",
        "k(quaternion q)",
        "k(int)",
        "k(int n",
        "int n",
        "k(tf32 t)",
        "9k(int n)",
    ],
    ids=["twice", "struct", "array", "type", "unnamed", "open", "bare", "tf32", "kernel-name"],
)
def test_what_is_no_signature_is_refused(impl, check, text):
    """Aggregates by value, unknown types, a name that is none and malformed texts are invalid values (AMB-RT-101)."""
    answer = impl.abi.parameter_layout(signature=text)
    aggregate = text in ("k(struct point p)", "k(int n[4])")
    check.reading("AMB-RT-101", "aggregates laid out as C does", aggregate and isinstance(answer, Returned))
    check.status(answer, "TESS_ERR_INVALID_VALUE")
