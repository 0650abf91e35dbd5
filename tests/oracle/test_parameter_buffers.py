"""The oracle of parameter buffers, against the specification's own sample and Python's struct."""

from __future__ import annotations

import struct

import pytest

from tessera_conformance import oracle
from tessera_conformance.chapters.abi.kit.parameter_buffers import SAMPLE, signature
from tessera_conformance.oracle.parameter_buffers import arguments_of, by_the_rule, padding_of, without_padding


def test_the_sample_is_laid_out_as_the_specification_says() -> None:
    offsets, sizes, ends = oracle.parameter_layout(signature=SAMPLE)
    words = [int.from_bytes(offsets.data[i : i + 4], "little") for i in range(0, 36, 4)]
    assert words == [0, 8, 16, 24, 32, 36, 40, 44, 48]
    assert sizes.data == struct.pack("<9i", 8, 8, 8, 8, 4, 4, 4, 4, 4)
    assert ends.data == struct.pack("<2i", 0x34, 0x38)


def test_the_sample_is_packed_as_struct_does() -> None:
    buffer = oracle.parameter_buffer(signature=SAMPLE, values=[1, 2, 3, 4, 5, -6, 7, 8, 1.5])
    assert buffer.data == struct.pack("<QQQQiiiif4x", 1, 2, 3, 4, 5, -6, 7, 8, 1.5)
    assert (buffer.dtype, buffer.shape) == ("int8", (56,))


def test_scalars_and_bits_are_packed_as_struct_does() -> None:
    text = "k(bool a, fp16 b, double c, int8 d, int64 e, complex64 f)"
    exact = {"bits": struct.pack("<ff", 1.0, -2.0).hex()}
    buffer = oracle.parameter_buffer(signature=text, values=[True, 0.1, 0.1, -1, -2, exact])
    assert buffer.data == struct.pack("<?xe4xdb7xqff", True, 0.1, 0.1, -1, -2, 1.0, -2.0)


@pytest.mark.parametrize("values", [[], [1, 2], [{"bits": "00"}]])
def test_values_that_do_not_fit_are_refused(values: list[object]) -> None:
    with pytest.raises(ValueError, match="expected"):
        oracle.parameter_buffer(signature="k(int n)", values=values)


def test_signatures_are_written_and_read() -> None:
    arguments = [("x", "ptr"), ("n", "int32"), ("s", "bf16")]
    assert signature(*arguments) == "k(x*, int32 n, bf16 s)"
    assert arguments_of(signature(*arguments)) == arguments
    assert arguments_of("k()") == []
    assert arguments_of("k(int a, float b, double c)") == [("a", "int32"), ("b", "fp32"), ("c", "fp64")]


def test_no_argument_is_aligned_to_more_than_eight() -> None:
    places = by_the_rule([("a", "int8"), ("z", "complex128"), ("b", "int8")]).places
    assert [place.offset for place in places] == [0, 8, 24]


def test_padding_is_what_no_argument_has() -> None:
    assert padding_of(by_the_rule([("a", "int8"), ("b", "int32"), ("c", "int16")])) == [1, 2, 3, 10, 11, 12, 13, 14, 15]
    assert without_padding("k(int8 a, int b)", bytes(range(1, 9))) == bytes([1, 0, 0, 0, 5, 6, 7, 8])
    assert without_padding("k(int8 a, int b)", bytes(range(1, 8))) == bytes(range(1, 8))
