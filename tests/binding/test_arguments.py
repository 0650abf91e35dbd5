"""Arguments of launches: their types, and what the kernel says to them (RT-05-04, RT-10.1)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tessera_reference as ts
from tessera_reference.abi import Status

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


def test_the_buffer_of_the_sample_has_the_layout_of_the_specification() -> None:
    """Section 10.1: four pointers, four ints, a float at 0x30, 0x38 bytes."""
    layout = ts.pack_args(ONE, ONE, ONE, ONE, 1, 2, 3, 4, scale=1.0).layout
    assert layout.offsets == (0x00, 0x08, 0x10, 0x18, 0x20, 0x24, 0x28, 0x2C, 0x30)
    assert layout.size == 0x38


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
