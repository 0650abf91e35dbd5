"""The parameter buffer: layouts, packing, unpacking (runtime spec 10.1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Parameter, Status, layout_of, pack, parse_signature, unpack

SAMPLE = "flash_attention(Q*, K*, V*, O*, int B, int H, int L, int D, float scale)"
SIZES = {
    "ptr": 8,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp16": 2,
    "bf16": 2,
    "fp32": 4,
    "fp64": 8,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
}


def parameters(*types: str) -> list[Parameter]:
    return [Parameter(f"p{position}", name) for position, name in enumerate(types)]


def test_the_sample_of_the_specification_to_the_byte() -> None:
    layout = layout_of(parse_signature(SAMPLE).parameters)
    assert layout.offsets == (0x00, 0x08, 0x10, 0x18, 0x20, 0x24, 0x28, 0x2C, 0x30)
    assert layout.sizes == (8, 8, 8, 8, 4, 4, 4, 4, 4)
    assert (layout.end_of_last_argument, layout.size) == (0x34, 0x38)
    values = (0x1122334455667788, 2, 3, 0xFFFFFFFFFFFFFFFF, 5, -1, 0x01020304, -(2**31), 1.0)
    expected = (
        "8877665544332211 0200000000000000 0300000000000000 ffffffffffffffff"
        "05000000 ffffffff 04030201 00000080 0000803f 00000000"
    )
    assert pack(layout, values) == bytes.fromhex(expected)
    assert unpack(layout, bytes.fromhex(expected)) == values


@pytest.mark.parametrize(
    ("types", "offsets", "end", "size"),
    [
        ((), (), 0, 0),
        (("bool",), (0,), 1, 8),
        (("int32", "ptr"), (0, 8), 16, 16),
        (("ptr", "int32"), (0, 8), 12, 16),
        (("int8", "int16", "int8", "int32", "int8", "int64"), (0, 2, 4, 8, 12, 16), 24, 24),
        (("int32", "complex64"), (0, 8), 16, 16),  # C aligns it to 4
        (("bool", "complex128", "bool"), (0, 8, 24), 25, 32),  # its size is 16, its alignment 8
        (("fp8_e4m3", "fp16", "fp8_e5m2", "bf16"), (0, 2, 4, 6), 8, 8),
        (("int32", "int32", "int32"), (0, 4, 8), 12, 16),
    ],
)
def test_layouts_worked_out_by_hand(types: tuple[str, ...], offsets: tuple[int, ...], end: int, size: int) -> None:
    layout = layout_of(parameters(*types))
    assert (layout.offsets, layout.end_of_last_argument, layout.size) == (offsets, end, size)


@given(st.lists(st.sampled_from(sorted(SIZES)), max_size=40))
def test_every_layout_keeps_the_rules(types: list[str]) -> None:
    """In order, aligned, no gap larger than alignment asks for, and the buffer ends on the next multiple of eight."""
    layout = layout_of(parameters(*types))
    end = 0
    for offset, size, name in zip(layout.offsets, layout.sizes, types, strict=True):
        assert size == SIZES[name]
        assert offset % min(size, 8) == 0
        assert 0 <= offset - end < min(size, 8)
        end = offset + size
    assert layout.end_of_last_argument == end
    assert layout.size % 8 == 0
    assert 0 <= layout.size - end < 8


def test_what_lies_in_the_padding_is_no_matter() -> None:
    """Bytes 0x34 to 0x37 of the sample, and the seven between a byte and a pointer."""
    for signature, values in ((SAMPLE, (1, 2, 3, 4, 5, 6, 7, 8, 0.5)), ("f(bool b, X*, int8 last)", (True, 9, -2))):
        layout = layout_of(parse_signature(signature).parameters)
        dirty = bytearray(b"\xa5" * layout.size)
        clean = pack(layout, values)
        for offset, size in zip(layout.offsets, layout.sizes, strict=True):
            dirty[offset : offset + size] = clean[offset : offset + size]
        assert bytes(dirty) != clean
        assert unpack(layout, bytes(dirty)) == values


def test_padding_is_written_as_zero() -> None:
    layout = layout_of(parameters("int8", "int64", "int16"))
    assert pack(layout, (-1, -1, -1)).hex() == "ff" + 7 * "00" + 8 * "ff" + 2 * "ff" + 6 * "00"


def test_a_buffer_must_reach_the_end_of_the_last_argument() -> None:
    """0x34 bytes hold the sample's arguments; one less does not; more than the layout is no matter."""
    layout = layout_of(parse_signature(SAMPLE).parameters)
    values = (1, 2, 3, 4, 5, 6, 7, 8, 0.5)
    buffer = pack(layout, values)
    assert unpack(layout, buffer[:0x34]) == values
    assert unpack(layout, buffer + b"\xff") == values
    with pytest.raises(Failure, match="tessLaunch: argSize is 51; expected 56, or at least 52") as caught:
        unpack(layout, buffer[:0x33])
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_a_kernel_without_parameters_has_an_empty_buffer() -> None:
    layout = layout_of(())
    assert pack(layout, ()) == b""
    assert unpack(layout, b"") == unpack(layout, b"anything") == ()


@pytest.mark.parametrize("values", [(), (1,), (1, 2, 3)])
def test_as_many_values_as_parameters(values: tuple[int, ...]) -> None:
    with pytest.raises(Failure, match=f"{len(values)} values; expected 2") as caught:
        pack(layout_of(parameters("int32", "int32")), values)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


@pytest.mark.parametrize("name", ["", "1x", "a b", "größe", "int", "x\n", None, 3])
def test_a_parameter_has_a_name_that_c_can_say(name: object) -> None:
    with pytest.raises(Failure, match="expected a C identifier") as caught:
        Parameter(name, "int32")  # type: ignore[arg-type]
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


@pytest.mark.parametrize("name", ["tf32", "int", "uint32", "ptr ", "", None, ["int32"]])
def test_a_parameter_has_a_type_of_the_abi(name: object) -> None:
    with pytest.raises(Failure, match="expected ptr, fp8_e4m3, ") as caught:
        Parameter("x", name)  # type: ignore[arg-type]
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_names_differ() -> None:
    with pytest.raises(Failure, match="two parameters called x"):
        layout_of([Parameter("x", "int32"), Parameter("y", "int32"), Parameter("x", "ptr")])
