"""Arrays of devices, pinned memory, copies and collectives on them (runtime spec 4.4, 4.6, 5)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tessera_reference as ts
from tessera_reference.abi import Status


def test_a_device_array_has_a_copy_on_every_rank(mesh: ts.Mesh) -> None:
    array = ts.DeviceArray(mesh, (2, 3), "int32").put(np.full((2, 3), 7, np.int32))
    array.put(np.arange(6, dtype=np.int32).reshape(2, 3), rank=5)
    assert [array.get(rank).tolist() for rank in (0, 4, 5)] == [[[7] * 3] * 2] * 2 + [[[0, 1, 2], [3, 4, 5]]]
    assert (array.shape, array.size, array.nbytes, array.dtype.name) == ((2, 3), 6, 24, "int32")


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


@pytest.mark.parametrize("shape", [(), (0,), 5, (2, 0, 3)])
def test_any_shape_will_do(pair: ts.Mesh, shape: Any) -> None:
    values = np.ones(shape)
    assert ts.DeviceArray(pair, shape, "fp64").put(values).get().tolist() == values.tolist()


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


def test_shapes_and_ranks_that_are_none_are_refused(pair: ts.Mesh) -> None:
    for shape in (-1, (2, -3), (1.5,)):
        with pytest.raises(ts.TesseraError, match="tessMalloc: shape"):
            ts.DeviceArray(pair, shape)
    array = ts.DeviceArray(pair, 1).put(np.ones(1, np.float32))
    for rank in (-1, 2):
        with pytest.raises(ts.TesseraError, match="rank"):
            array.get(rank)
        with pytest.raises(ts.TesseraError, match="rank"):
            array.put(np.ones(1, np.float32), rank)


def test_memory_that_a_device_does_not_have_is_refused(pair: ts.Mesh) -> None:
    with pytest.raises(ts.TesseraError, match="tessMalloc") as caught:
        ts.DeviceArray(pair, 1 << 40, "fp64")
    assert caught.value.status is Status.TESS_ERR_OUT_OF_MEMORY


def test_closed_arrays_are_free_and_closing_twice_is_no_error(pair: ts.Mesh) -> None:
    with ts.DeviceArray(pair, 4) as array, ts.PinnedArray(4) as pinned:
        array.put(np.zeros(4, np.float32))
        pinned.put(np.zeros(4, np.float32))
    array.close()
    pinned.close()
    with pytest.raises(ts.TesseraError, match="freed"):
        array.get()
    with pytest.raises(ts.TesseraError, match="freed"):
        pinned.get()


def test_copies_go_between_host_pinned_memory_and_devices(pair: ts.Mesh) -> None:
    values, back = np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
    first, second, pinned = ts.DeviceArray(pair, 3), ts.DeviceArray(pair, 3), ts.PinnedArray(3)
    ts.copy(first, values)
    ts.copy(second, first)
    ts.copy(pinned, second)
    ts.copy(back, second)
    assert back.tolist() == [0, 0, 0]  # queued, not yet done
    ts.synchronize()
    assert back.tolist() == pinned.get().tolist() == second.get(1).tolist() == [0, 1, 2]
    second.put(values + 1, rank=1)
    ts.copy(back, second)
    ts.copy(first, pinned.put(values * 2))
    ts.synchronize()
    assert back.tolist() == [0, 1, 2]  # of rank 0
    assert first.get(1).tolist() == [0, 2, 4]


def test_copies_that_are_none_are_refused(pair: ts.Mesh) -> None:
    array, locked = ts.DeviceArray(pair, 3), np.zeros(3, np.float32)
    locked.flags.writeable = False
    for destination, source, told in (
        (np.zeros(3), np.zeros(3), "two arrays of the host"),
        (locked, array, "read-only"),
        (array, ts.DeviceArray(pair, 4), r"an array fp32\[4\]; expected fp32\[3\]"),
        (ts.PinnedArray(3, "int32"), array, r"an array int32\[3\]"),
        (array, np.zeros(3), r"an array fp64\[3\]"),
    ):
        with pytest.raises(ts.TesseraError, match=told):
            ts.copy(destination, source)


def filled(mesh: ts.Mesh, count: int) -> ts.DeviceArray:
    """On rank r, 10 r and the numbers that follow."""
    array = ts.DeviceArray(mesh, count, "int32")
    for rank in range(mesh.size):
        array.put(np.arange(count, dtype=np.int32) + 10 * rank, rank)
    return array


@pytest.mark.parametrize(("op", "expected"), [("sum", [60, 64]), ("max", [30, 31]), ("min", [0, 1])])
def test_all_reduce_along_an_axis(mesh: ts.Mesh, op: str, expected: list[int]) -> None:
    """Ranks 0 to 3 meet along dp, and 4 to 7 do."""
    array = filled(mesh, 2)
    assert ts.collectives.all_reduce(mesh, array, op=op, axis="dp") is array
    assert array.get(2).tolist() == expected
    other = {"sum": [220, 224], "max": [70, 71], "min": [40, 41]}[op]
    assert array.get(7).tolist() == other


def test_reduce_scatter_all_gather_and_broadcast(mesh: ts.Mesh) -> None:
    array = filled(mesh, 4)
    ts.collectives.reduce_scatter(mesh, array, axis="dp")
    assert [array.get(rank)[rank].item() for rank in range(4)] == [60, 64, 68, 72]
    gathered = ts.collectives.all_gather(mesh, filled(mesh, 4), axis="dp")
    assert gathered.get(1).tolist() == [0, 11, 22, 33]
    sent = ts.collectives.broadcast(mesh, filled(mesh, 2), root=6)
    assert [sent.get(rank).tolist() for rank in (0, 7)] == [[60, 61]] * 2


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


def test_collectives_that_are_none_are_refused(pair: ts.Mesh, mesh: ts.Mesh) -> None:
    array = ts.DeviceArray(pair, 3).put(np.ones(3, np.float32))
    for op in ("mean", None, []):
        with pytest.raises(ts.TesseraError, match=r"tessAllReduce: op .*; expected sum, max, min"):
            ts.collectives.all_reduce(pair, array, op=op, axis="dp")
    with pytest.raises(ts.TesseraError, match="axis"):
        ts.collectives.all_gather(pair, array, axis="rows")
    with pytest.raises(ts.TesseraError, match="of another mesh"):
        ts.collectives.broadcast(mesh, array)
    with pytest.raises(ts.TesseraError, match="root"):
        ts.collectives.broadcast(pair, array, root=2)
    with pytest.raises(ts.TesseraError, match="type list"):
        ts.collectives.all_reduce(pair, [1.0], axis="dp")
