"""Arrays of devices, pinned memory, copies and collectives on them (runtime spec 4.4, 4.6, 5)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tessera_reference as ts


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_narrow_floats_are_those_of_ml_dtypes(pair: ts.Mesh, name: str) -> None:
    values = np.array([0.5, -2, 3], getattr(ml_dtypes, name))
    array = ts.DeviceArray(pair, 3, values.dtype).put(values)
    assert array.get().dtype == values.dtype
    assert array.get().tolist() == values.tolist()


def test_without_ml_dtypes_narrow_floats_are_their_codes(pair: ts.Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("tessera_reference.binding.meshes.importlib.import_module", missing)
    array = ts.DeviceArray(pair, 2, "bf16").put(np.array([0x3F80, 0xC000], np.uint16))
    assert array.get().dtype == np.uint16
    assert array.get().tolist() == [0x3F80, 0xC000]
    assert ts.DeviceArray(pair, 1, "fp8_e5m2").put(np.array([0x3C], np.uint8)).get().tolist() == [0x3C]


@pytest.mark.parametrize(
    ("array", "told"),
    [
        (np.zeros(4, np.float32), r"an array fp32\[4\]; expected fp32\[3\]"),
        (np.zeros(3, np.float64), r"an array fp64\[3\]; expected fp32\[3\]"),
        ([1, 2, 3], "type list"),
    ],
)
def test_only_an_array_of_the_same_kind_is_put(pair: ts.Mesh, array: Any, told: str) -> None:
    with pytest.raises(ts.TesseraError, match=told):
        ts.DeviceArray(pair, 3).put(array)
    with pytest.raises(ts.TesseraError, match=told):
        ts.PinnedArray(3).put(array)


def test_collectives_on_arrays_of_the_caller_are_in_place(mesh: ts.Mesh) -> None:
    """All ranks share it: four of them along dp make four times as much."""
    grads = np.array([[1, 2], [3, 0.5]])
    assert ts.collectives.all_reduce(mesh, grads, axis="dp") is grads
    ts.synchronize()
    assert grads.tolist() == [[4, 8], [12, 2]]


def test_an_array_that_is_read_only_is_copied_to_the_devices(mesh: ts.Mesh) -> None:
    jnp = pytest.importorskip("jax.numpy", reason="pip install -e '.[evidence]'")
    grads = jnp.asarray([1, 2], jnp.bfloat16)
    reduced = ts.collectives.all_reduce(mesh, grads, axis="dp")
    assert isinstance(reduced, ts.DeviceArray)
    assert reduced.get(3).tolist() == [4, 8]
    assert grads.tolist() == [1, 2]
