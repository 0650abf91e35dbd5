"""Arguments of launches, arrays of the host seen in place, and the refusal of what is neither (RT-05-04, RT-05-07)."""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tessera_reference as ts
from tessera_reference.abi.status import Status
from tessera_reference.binding.meshes import NUMPY_NAMES, abi_dtype, dtype_of, host_array, is_array, numpy_dtype

ONE = np.zeros(1, np.float32)


@pytest.mark.parametrize(
    ("given", "type"),
    [
        (ONE, "ptr"), (1, "int32"), (True, "bool"), (1.0, "fp32"), (1j, "complex64"), (np.float64(1), "fp64"),
        (np.int8(1), "int8"), (np.int64(1), "int64"), (np.bool_(True), "bool"), (np.complex128(1), "complex128"),
        (np.float16(1), "fp16"), (ml_dtypes.bfloat16(1), "bf16"), (ml_dtypes.float8_e5m2(1), "fp8_e5m2"),
    ],
)  # fmt: skip
def test_each_argument_has_the_type_of_the_abi(given: Any, type: str) -> None:
    (argument,) = ts.pack_args(given).arguments
    assert argument.type == type


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (1 << 31, r"2147483648 as int32; .* np.int64\(value\)"),
        ([1.0], r"type list; .*np.asarray\(...\)"),
        ("1", "type str"),
        (np.uint8(3), "uint8"),
        (np.zeros(2, np.uint64), r"array.view\(int64\)"),
        (None, "type NoneType"),
    ],
)
def test_what_is_no_argument_is_refused(given: Any, told: str) -> None:
    with pytest.raises(ts.TesseraError, match=told) as caught:
        ts.pack_args(given)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def launch(mod: ts.Module, mesh: ts.Mesh, name: str, *arguments: Any, **named: Any) -> None:
    ts.launch(mod.kernel[name], mesh, grid=(1, 1, 1), args=ts.pack_args(*arguments, **named))


X, Y = np.zeros(4, np.float32), np.zeros(4, np.float32)
LOCKED = np.zeros(4, np.float32)
LOCKED.flags.writeable = False


@pytest.mark.parametrize(
    ("name", "arguments", "named", "told"),
    [
        ("twice", (X, Y), {}, r"kernel twice: 2 arguments; expected 3 \(X: ptr, Y: ptr, N: int32\)"),
        ("twice", (X, 4, Y), {}, "Y of type int32; expected an array"),
        ("twice", (X, Y, 4.0), {}, r"N of type fp32; expected int32: np.int32\(value\)"),
        ("times", (np.zeros(2, np.int64), 3), {}, r"factor of type int32; expected int64: np.int64\(value\)"),
        ("twice", (X,), {"N": 4, "Y": Y}, r"N= in the place of Y"),
        ("twice", (X, Y.astype(np.float64), 4), {}, "Y of dtype fp64; expected fp32"),
        ("twice", (X, Y, 5), {}, r"X of shape \[4\]; expected 5 elements, \[5\]"),
        ("half", (np.zeros(3, ml_dtypes.bfloat16),) * 2, {}, r"X of shape \[3\]; expected 4 elements"),
        ("twice", (X, LOCKED, 4), {}, r"Y, an array that is read-only; expected .* ts.DeviceArray"),
    ],
)
def test_a_launch_compares_arguments_with_the_kernel(
    mod: ts.Module, pair: ts.Mesh, name: str, arguments: tuple[Any, ...], named: dict[str, Any], told: str
) -> None:
    with pytest.raises(ts.TesseraError, match=told) as caught:
        launch(mod, pair, name, *arguments, **named)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_a_device_array_of_another_mesh_is_refused(mod: ts.Module, pair: ts.Mesh) -> None:
    other = ts.mesh(devices=[5, 2], axes={"dp": 2})
    with pytest.raises(ts.TesseraError, match="of another mesh"):
        launch(mod, pair, "increase", ts.DeviceArray(other, 4), 4)


def test_an_array_of_another_shape_with_as_many_elements_will_do(mod: ts.Module, pair: ts.Mesh) -> None:
    given, out = np.arange(4, dtype=np.float32).reshape(2, 2), np.zeros((4, 1), np.float32)
    launch(mod, pair, "twice", given, out, N=4)
    ts.synchronize()
    assert out.ravel().tolist() == [0, 2, 4, 6]


def test_numbers_reach_the_kernel(mod: ts.Module, pair: ts.Mesh) -> None:
    """On an array of its own each rank multiplies once."""
    array = ts.DeviceArray(pair, 2, "int64").put(np.array([3, -5]))
    launch(mod, pair, "times", array, factor=np.int64(1 << 40))
    assert array.get(1).tolist() == [3 << 40, -5 << 40]


def test_an_argument_buffer_serves_many_launches_and_meshes(mod: ts.Module, pair: ts.Mesh, mesh: ts.Mesh) -> None:
    given, out = np.ones(3, np.float32), np.zeros(3, np.float32)
    arguments = ts.pack_args(given, out, 3)
    for on in (pair, mesh, pair):
        out[:] = 0
        ts.launch(mod.kernel["twice"], on, grid=(1,), args=arguments)
        ts.synchronize()
        assert out.tolist() == [2, 2, 2]
        given += 0


def test_an_array_that_is_only_read_may_be_read_only(mod: ts.Module, pair: ts.Mesh) -> None:
    out = np.ones(4, np.float32)
    launch(mod, pair, "twice", LOCKED, out, 4)
    ts.synchronize()
    assert out.tolist() == [0, 0, 0, 0]


def test_arrays_of_jax_are_inputs_and_never_outputs(mod: ts.Module, pair: ts.Mesh) -> None:
    jnp = pytest.importorskip("jax.numpy", reason="pip install -e '.[evidence]'")
    given, out = jnp.asarray([1, 2, 3, 0.5], jnp.bfloat16), np.zeros(4, ml_dtypes.bfloat16)
    launch(mod, pair, "half", given, out)
    ts.synchronize()
    assert out.astype(float).tolist() == [0.5, 1, 1.5, 0.25]
    with pytest.raises(ts.TesseraError, match="read-only"):
        launch(mod, pair, "half", out, given)


def test_tensors_of_torch_hold_results_in_place(mod: ts.Module, pair: ts.Mesh) -> None:
    torch = pytest.importorskip("torch", reason="pip install torch")
    given, out = torch.tensor([1, 2, 3, 0.5], dtype=torch.bfloat16), torch.zeros(4, dtype=torch.bfloat16)
    launch(mod, pair, "half", given, out)
    ts.synchronize()
    assert out.tolist() == [0.5, 1, 1.5, 0.25]


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
    """The first version of DLPack cannot say that memory may be written."""

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


ARRAY = np.zeros(4, np.float32)
STRANGERS = [None, 3, 1.5, "dp", b"image", [1], {"dp": 2}, object(), ARRAY]
CALLS: dict[str, tuple[tuple[type, ...], Callable[[Any, Any, Any], Any]]] = {
    "init's topology": ((type(None),), lambda mesh, kernel, x: ts.init(x)),
    "init's environment": ((type(None), dict), lambda mesh, kernel, x: ts.init(environment=x)),
    "mesh's devices": ((), lambda mesh, kernel, x: ts.mesh(x, {"dp": 2})),
    "mesh's axes": ((dict,), lambda mesh, kernel, x: ts.mesh([0, 1], x)),
    "mesh's context": ((type(None),), lambda mesh, kernel, x: ts.mesh([0, 1], {"dp": 2}, x)),
    "load's image": ((), lambda mesh, kernel, x: ts.module.load(x)),
    "a kernel's name": ((), lambda mesh, kernel, x: kernel.module.kernel[x]),
    "launch's kernel": ((), lambda mesh, kernel, x: ts.launch(x, mesh, grid=(1,))),
    "launch's mesh": ((), lambda mesh, kernel, x: ts.launch(kernel, x, grid=(1,))),
    "launch's grid": (
        (int, list),
        lambda mesh, kernel, x: ts.launch(kernel, mesh, grid=x, args=ts.pack_args(ARRAY, 4)),
    ),
    "launch's arguments": ((), lambda mesh, kernel, x: ts.launch(kernel, mesh, grid=(1,), args=x)),
    "launch's flags": ((), lambda mesh, kernel, x: ts.launch(kernel, mesh, grid=(1,), flags=x)),
    "launch's stream": ((type(None),), lambda mesh, kernel, x: ts.launch(kernel, mesh, grid=(1,), stream=x)),
    "launch's shared bytes": ((), lambda mesh, kernel, x: ts.launch(kernel, mesh, grid=(1,), shmem_bytes=x)),
    "a stream's mesh": ((), lambda mesh, kernel, x: ts.Stream(x)),
    "a stream's priority": ((int,), lambda mesh, kernel, x: ts.Stream(mesh, x)),
    "an event to record": ((), lambda mesh, kernel, x: mesh.default_stream.record(x)),
    "an event to wait for": ((), lambda mesh, kernel, x: mesh.default_stream.wait(x)),
    "a stream to synchronize": ((type(None),), lambda mesh, kernel, x: ts.synchronize(x)),
    "an array's mesh": ((), lambda mesh, kernel, x: ts.DeviceArray(x, (2,))),
    "an array's shape": ((int, list), lambda mesh, kernel, x: ts.DeviceArray(mesh, x)),
    "an array's dtype": ((), lambda mesh, kernel, x: ts.DeviceArray(mesh, (2,), x)),
    "what an array is to hold": ((np.ndarray,), lambda mesh, kernel, x: ts.DeviceArray(mesh, (4,)).put(x)),
    "a rank's array": ((type(None), int), lambda mesh, kernel, x: ts.DeviceArray(mesh, (4,)).put(ARRAY, x)),
    "a copy's source": ((np.ndarray,), lambda mesh, kernel, x: ts.copy(ts.DeviceArray(mesh, (4,)), x)),
    "all_reduce's mesh": ((), lambda mesh, kernel, x: ts.collectives.all_reduce(x, ARRAY, axis="dp")),
    "all_reduce's array": ((np.ndarray, bytes), lambda mesh, kernel, x: ts.collectives.all_reduce(mesh, x, axis="dp")),
    "all_reduce's op": ((), lambda mesh, kernel, x: ts.collectives.all_reduce(mesh, ARRAY, op=x, axis="dp")),
    "all_reduce's axis": ((str,), lambda mesh, kernel, x: ts.collectives.all_reduce(mesh, ARRAY, axis=x)),
    "broadcast's root": ((int,), lambda mesh, kernel, x: ts.collectives.broadcast(mesh, ARRAY, root=x)),
    "a policy": ((), lambda mesh, kernel, x: setattr(mesh.context, "policy", x)),
    "a switch": ((), lambda mesh, kernel, x: mesh.context.set_policy(deterministic=x)),
    "a profile's path": ((str, bytes), lambda mesh, kernel, x: mesh.context.profile(x).__enter__()),
}
"""Calls with one argument open, and the types that it may have."""


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_of_a_wrong_type_is_named(mesh: ts.Mesh, mod: ts.Module, name: str) -> None:
    taken, call = CALLS[name]
    for stranger in STRANGERS:
        if isinstance(stranger, taken):
            continue
        with pytest.raises(ts.TesseraError) as caught:
            call(mesh, mod.kernel["increase"], stranger)
        assert caught.value.status is Status.TESS_ERR_INVALID_VALUE
        assert "expected" in caught.value.message


def test_an_unknown_switch_is_named(ctx: ts.Context) -> None:
    with pytest.raises(ts.TesseraError, match="switch precise; expected one of stableReductions"):
        ctx.set_policy(precise=1)
