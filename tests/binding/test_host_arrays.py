"""Arrays of the caller are seen in place, or refused with what to do (RT-05-08)."""

from __future__ import annotations

import array
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tessera_reference as ts
from tessera_reference.abi import Status
from tessera_reference.binding.meshes import NUMPY_NAMES, abi_dtype, dtype_of, host_array, is_array, numpy_dtype


def address(values: np.ndarray) -> int:
    return int(values.__array_interface__["data"][0])


@pytest.mark.parametrize(("numpy", "abi"), NUMPY_NAMES.items())
def test_a_numpy_array_of_every_dtype_is_seen_in_place(numpy: str, abi: str) -> None:
    values = np.zeros((2, 3), getattr(ml_dtypes, numpy, None) or numpy)
    seen = host_array(values, "f")
    assert (seen.dtype.name, seen.shape, seen.writable) == (abi, (2, 3), True)
    seen.memory[:2] = b"\x3c\x01"
    assert values.tobytes()[:2] == b"\x3c\x01"
    assert numpy_dtype(seen.dtype) == values.dtype
    assert dtype_of(values.dtype, "f") is dtype_of(abi, "f") is seen.dtype


@pytest.mark.parametrize("values", [np.zeros(()), np.zeros((0, 4)), np.zeros((1, 1, 1))])
def test_arrays_without_dimensions_or_elements_have_memory_too(values: np.ndarray) -> None:
    assert host_array(values, "f").memory.nbytes == values.nbytes


def test_what_speaks_the_buffer_protocol_is_an_array() -> None:
    given = array.array("f", [1, 2, 3])
    seen = host_array(given, "f")
    assert (seen.dtype.name, seen.shape) == ("fp32", (3,))
    seen.values[1] = 7
    assert given[1] == 7
    assert not host_array(memoryview(bytes(4)).cast("i"), "f").writable


class Speaks:
    """An array that offers one protocol alone."""

    def __init__(self, values: np.ndarray, *protocols: str) -> None:
        for name in protocols:
            held = getattr(values, name)
            setattr(self, name, held)
        self._values = values

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class DLPack:
    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


def test_dlpack_and_the_array_interface_are_views() -> None:
    values = np.arange(4, dtype=np.int32)
    for given in (DLPack(values), Speaks(values, "__array_interface__")):
        seen = host_array(given, "f")
        assert address(seen.values) == address(values)
        assert seen.writable


class OldDLPack(DLPack):
    """As the first version of DLPack, which cannot say that memory may be written."""

    def __dlpack__(self, **options: Any) -> Any:
        locked = self.values.view()
        locked.flags.writeable = False
        return locked.__dlpack__(max_version=(1, 0))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values


def test_memory_that_dlpack_shows_as_read_only_is_written_where_its_owner_allows_it() -> None:
    values = np.zeros(3)
    assert host_array(OldDLPack(values), "f").writable
    other = OldDLPack(values)
    other.__class__ = type("Copying", (OldDLPack,), {"__array__": lambda self, *_, **__: values.copy()})
    assert not host_array(other, "f").writable


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            np.zeros((4, 4))[:, 1],
            r"strides \(32,\); expected contiguous memory in row-major order: np.ascontiguousarray",
        ),
        (np.asfortranarray(np.zeros((2, 3))), "np.ascontiguousarray"),
        (np.zeros(3, np.uint16), r"an array of uint16; .* array.view\(int16\)"),
        (np.zeros(3, ">f4"), "big-endian float32; expected little-endian"),
        (np.zeros(3, "U2"), "array of <U2; expected one of fp8_e4m3, .*astype"),
        (np.array([None]), "array of object"),
        (np.zeros(3, ml_dtypes.float8_e4m3fnuz), "float8_e4m3fnuz"),
        ([1, 2], r"type list; .*np.asarray\(...\)"),
        ("text", "type str"),
        (3.5, "type float"),
        (None, "type NoneType"),
    ],
)
def test_what_cannot_be_seen_in_place_is_refused_with_what_to_do(given: Any, told: str) -> None:
    with pytest.raises(ts.TesseraError, match=told) as caught:
        host_array(given, "f")
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE
    assert str(caught.value).startswith("TESS_ERR_INVALID_VALUE: f: ")


class Elsewhere:
    """An array on a device that numpy does not reach."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("memory of a CUDA device; use .cpu()")


def test_the_owner_of_an_array_is_quoted() -> None:
    with pytest.raises(ts.TesseraError, match=r"memory of a CUDA device; use \.cpu"):
        host_array(Elsewhere(), "f")


def test_numbers_are_no_arrays() -> None:
    assert not any(map(is_array, (1, 1.0, True, 1j, np.float32(1), ml_dtypes.bfloat16(1), "x", None, [1])))
    assert all(map(is_array, (np.zeros(()), array.array("i"), memoryview(b""))))


def test_dtypes_that_are_none_are_refused() -> None:
    for given in ("float128x", object(), "uint8", 3):
        with pytest.raises(ts.TesseraError, match=r"f: dtype .*; expected one of"):
            dtype_of(given, "f")
    assert dtype_of(float, "f").name == "fp64"
    assert dtype_of("tf32", "f").name == "fp32"
    with pytest.raises(ts.TesseraError, match="uint8"):
        abi_dtype(np.dtype("uint8"), "f")


def test_arrays_of_jax_are_seen_in_place_and_never_written() -> None:
    jnp = pytest.importorskip("jax.numpy", reason="pip install -e '.[evidence]'")
    for dtype, name in ((jnp.float32, "fp32"), (jnp.bfloat16, "bf16"), (jnp.float8_e4m3fn, "fp8_e4m3")):
        given = jnp.arange(6, dtype=dtype).reshape(2, 3)
        seen = host_array(given, "f")
        assert (seen.dtype.name, seen.shape, seen.writable) == (name, (2, 3), False)
        assert address(seen.values) == given.unsafe_buffer_pointer()
        assert bytes(seen.memory) == np.asarray(given).tobytes()


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e5m2", "int64", "bool"])
def test_tensors_of_torch_are_seen_in_place_and_written(name: str) -> None:
    torch = pytest.importorskip("torch", reason="pip install torch")
    given = torch.zeros(2, 3, dtype=getattr(torch, name))
    seen = host_array(given, "f")
    assert (seen.dtype.name, seen.shape, seen.writable) == (NUMPY_NAMES[name], (2, 3), True)
    assert address(seen.values) == given.data_ptr()


def test_tensors_of_torch_that_need_gradients_or_are_scattered_are_refused() -> None:
    torch = pytest.importorskip("torch", reason="pip install torch")
    for dtype in (torch.float32, torch.bfloat16):
        with pytest.raises(ts.TesseraError, match="detach"):
            host_array(torch.zeros(3, dtype=dtype, requires_grad=True), "f")
        with pytest.raises(ts.TesseraError, match="contiguous"):
            host_array(torch.zeros(3, 4, dtype=dtype).t(), "f")
