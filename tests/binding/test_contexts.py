"""Contexts, meshes, modules, streams and events of the binding; how errors arrive; what is mapped for how long."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path

import numpy as np
import pytest

import tessera_reference as ts
from tessera_reference.abi import NumericsPolicy, Status
from tessera_reference.mesh.topology import named


def test_without_init_there_is_no_context() -> None:
    for call in (lambda: ts.mesh(devices=[0], axes={}), ts.Event, ts.synchronize, lambda: ts.module.load(b"")):
        with pytest.raises(ts.TesseraError, match=r"call ts.init\(\) first") as caught:
            call()
        assert caught.value.status is Status.TESS_ERR_NOT_INITIALIZED


def test_the_last_context_that_is_open_is_the_default() -> None:
    with ts.init(environment={}) as first:
        with ts.init(environment={}) as second:
            assert ts.mesh(devices=[0], axes={}).context is second
            assert ts.mesh(devices=[0], axes={}, context=first).context is first
        assert ts.mesh(devices=[0], axes={}).context is first
        second.close()
        assert not second.is_open
        assert first.is_open


def test_a_context_has_a_machine_of_its_own() -> None:
    with ts.init(named("single"), environment={}):
        ts.mesh(devices=[0], axes={"tp": 1})
        with pytest.raises(ts.TesseraError, match="device"):
            ts.mesh(devices=[1], axes={})


def test_the_environment_is_read_at_init(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESS_DETERMINISTIC", "0")
    with ts.init() as context:
        assert context.policy.deterministic == 0
    with ts.init(environment={}) as context:
        assert context.policy.deterministic == 1
    with pytest.raises(ts.TesseraError, match="TESS_DETERMINISTIC is 'maybe'; expected 0 or 1"):
        ts.init(environment={"TESS_DETERMINISTIC": "maybe"})
    with pytest.raises(ts.TesseraError, match="no context"):
        ts.synchronize()


def test_the_policy_is_read_and_changed(ctx: ts.Context) -> None:
    ctx.policy = NumericsPolicy(0, 0, 1, 1)
    ctx.set_policy(deterministic=1)
    assert ctx.policy == NumericsPolicy(0, 1, 1, 1)
    with pytest.raises(ts.TesseraError, match="deterministic is 2; expected 0 or 1"):
        ctx.set_policy(deterministic=2)


def test_version_needs_no_context() -> None:
    major, minor, patch = ts.version()
    assert (major, minor) == (1, 0)
    assert patch >= 0


@pytest.mark.parametrize(
    ("devices", "axes", "told"),
    [
        (range(8), {"tp": 2, "rows": 4}, "axes rows; expected some of tp, pp, dp, ep"),
        (range(8), {"tp": 3}, "tessMeshCreate"),
        (range(8), {"tp": -1}, "axes.tp is -1"),
        ([0, 0], {"tp": 2}, "twice"),
        ([], {}, "nDevices"),
    ],
)
def test_meshes_that_are_none_are_refused(ctx: ts.Context, devices: range, axes: dict[str, int], told: str) -> None:
    with pytest.raises(ts.TesseraError, match=told) as caught:
        ts.mesh(devices=devices, axes=axes)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_a_module_lists_its_kernels_and_refuses_others(mod: ts.Module) -> None:
    names = {"flash_attention_fused", "twice", "increase", "half", "quotient", "times"}
    assert set(mod.kernel) == names
    assert len(mod.kernel) == len(names)
    assert mod.kernel["twice"] is mod.kernel["twice"]
    assert mod.kernel["twice"].name == "twice"
    with pytest.raises(ts.TesseraError, match="'absent'") as caught:
        _ = mod.kernel["absent"]
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE
    mod.close()
    mod.close()


def test_bytes_that_are_no_fatbin_are_refused(ctx: ts.Context, image: bytes) -> None:
    for wrong in (b"", b"no fatbin", image[:-1], bytearray(image[:-1]) + b"x"):
        with pytest.raises(ts.TesseraError, match="tessModuleLoad: "):
            ts.module.load(wrong)


def test_a_module_is_explained(mod: ts.Module) -> None:
    assert "flash_attention_fused" in mod.explain()


def test_what_fails_while_a_kernel_runs_is_raised_by_synchronize_once(mod: ts.Module, pair: ts.Mesh) -> None:
    """A division by zero is no error of the launch (RT-06-06, RT-07-07)."""
    stream = ts.Stream(pair)
    zeros, out = np.zeros(4, np.int32), np.zeros(4, np.int32)
    arguments = ts.pack_args(zeros, out)
    ts.launch(mod.kernel["quotient"], pair, grid=(1, 1, 1), args=arguments, stream=stream)
    with pytest.raises(ts.TesseraError, match="quotient") as caught:
        ts.synchronize(stream)
    assert caught.value.status is Status.TESS_ERR_LAUNCH_FAILED
    assert caught.value.message in str(caught.value)
    ts.synchronize(stream)


def test_synchronize_without_a_stream_waits_for_all_and_raises_what_failed(mod: ts.Module, pair: ts.Mesh) -> None:
    first, second = ts.Stream(pair), ts.Stream(pair, priority=3)
    zeros, ones, out = np.zeros(4, np.int32), np.ones(3, np.float32), np.zeros(3, np.float32)
    ts.launch(mod.kernel["quotient"], pair, grid=(1,), args=ts.pack_args(zeros, zeros), stream=first)
    ts.launch(mod.kernel["twice"], pair, grid=(1,), args=ts.pack_args(ones, out, 3), stream=second)
    with pytest.raises(ts.TesseraError, match="quotient"):
        ts.synchronize()
    assert out.tolist() == [2, 2, 2]
    ts.synchronize()


def test_the_default_stream_is_that_of_each_mesh(mod: ts.Module, pair: ts.Mesh, mesh: ts.Mesh) -> None:
    stream = ts.default_stream()
    outs = [np.zeros(3, np.float32), np.zeros(3, np.float32)]
    for on, out in zip((pair, mesh), outs, strict=True):
        ts.launch(mod.kernel["twice"], on, grid=(1,), args=ts.pack_args(np.ones(3, np.float32), out, 3), stream=stream)
    ts.synchronize(stream)
    assert [out.tolist() for out in outs] == [[2, 2, 2]] * 2


def test_a_stream_of_another_mesh_and_what_is_none_are_refused(mod: ts.Module, pair: ts.Mesh, mesh: ts.Mesh) -> None:
    for stream in (ts.Stream(mesh), 7):
        with pytest.raises(ts.TesseraError, match="tessLaunch: a stream of"):
            ts.launch(mod.kernel["twice"], pair, grid=(1,), stream=stream)


@pytest.mark.parametrize("grid", [(), (1, 1, 1, 1), (0, 1, 1), (-1,)])
def test_a_grid_has_one_to_three_extents_from_one(mod: ts.Module, pair: ts.Mesh, grid: tuple[int, ...]) -> None:
    arguments = ts.pack_args(ts.DeviceArray(pair, 3), 3)
    with pytest.raises(ts.TesseraError, match=r"tessLaunch: .*grid"):
        ts.launch(mod.kernel["increase"], pair, grid=grid, args=arguments)


def test_flags_reach_the_launch(mod: ts.Module, pair: ts.Mesh) -> None:
    arguments = ts.pack_args(ts.DeviceArray(pair, 3).put(np.zeros(3, np.float32)), 3)
    kernel = mod.kernel["increase"]
    ts.launch(kernel, pair, grid=(1,), args=arguments, flags=ts.LaunchFlag.TESS_LAUNCH_DETERMINISTIC)
    with pytest.raises(ts.TesseraError, match="flags"):
        ts.launch(kernel, pair, grid=(1,), args=arguments, flags=1 << 20)
    with pytest.raises(ts.TesseraError, match="shmemBytes"):
        ts.launch(kernel, pair, grid=(1,), args=arguments, shmem_bytes=1 << 40)
    with pytest.raises(ts.TesseraError, match="block"):
        ts.launch(kernel, pair, grid=(1,), block=(1 << 20,), args=arguments)
    ts.synchronize()


def test_events_order_work_of_several_streams(mod: ts.Module, pair: ts.Mesh, ctx: ts.Context) -> None:
    first, second, event = ts.Stream(pair), ts.Stream(pair), ts.Event()
    array, out = ts.DeviceArray(pair, 3).put(np.zeros(3, np.float32)), ts.DeviceArray(pair, 3)
    ts.launch(mod.kernel["increase"], pair, grid=(1,), args=ts.pack_args(array, 3), stream=first)
    first.record(event)
    second.wait(event)
    ts.launch(mod.kernel["twice"], pair, grid=(1,), args=ts.pack_args(array, out, 3), stream=second)
    assert out.get(1, stream=second).tolist() == [2, 2, 2]
    assert [each for each in ctx.findings() if each.kind == "unordered_access"] == []
    for closed in (event, event, first, first, second):
        closed.close()


def test_work_of_two_streams_without_an_event_is_found(mod: ts.Module, pair: ts.Mesh, ctx: ts.Context) -> None:
    array = ts.DeviceArray(pair, 3).put(np.zeros(3, np.float32))
    for stream in (ts.Stream(pair), ts.Stream(pair)):
        ts.launch(mod.kernel["increase"], pair, grid=(1,), args=ts.pack_args(array, 3), stream=stream)
    ts.synchronize()
    assert any(each.kind == "unordered_access" for each in ctx.findings())


def test_a_profile_is_a_trace_with_the_kernel_in_it(
    mod: ts.Module, pair: ts.Mesh, ctx: ts.Context, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    with ctx.profile(path):
        ts.launch(mod.kernel["increase"], pair, grid=(1,), args=ts.pack_args(np.zeros(3, np.float32), 3))
        ts.synchronize()
    events = json.loads(path.read_text())["traceEvents"]
    assert sorted({each["pid"] for each in events if each.get("cat") == "kernel"}) == [2, 5]
    with pytest.raises(ts.TesseraError, match="outJsonPath"), ctx.profile(tmp_path / "missing" / "trace.json"):
        pass


def test_an_array_is_kept_while_work_may_use_it_and_no_longer(mod: ts.Module, pair: ts.Mesh) -> None:
    """The program drops its array before the kernel has run; once all is synchronized nothing holds it."""
    first, second = ts.Stream(pair), ts.Stream(pair)
    given, out = np.ones(3, np.float32), np.zeros(3, np.float32)
    held = weakref.ref(given)
    ts.launch(mod.kernel["twice"], pair, grid=(1,), args=ts.pack_args(given, out, 3), stream=first)
    ts.launch(mod.kernel["twice"], pair, grid=(1,), args=ts.pack_args(given, out, 3), stream=second)
    del given
    first.synchronize()
    gc.collect()
    assert held() is not None
    second.synchronize()
    gc.collect()
    assert held() is None
    assert out.tolist() == [2, 2, 2]


def test_a_refused_launch_leaves_nothing_mapped(mod: ts.Module, pair: ts.Mesh) -> None:
    given = np.ones(3, np.float32)
    held = weakref.ref(given)
    with pytest.raises(ts.TesseraError, match="grid"):
        ts.launch(mod.kernel["increase"], pair, grid=(-1,), args=ts.pack_args(given, 3))
    del given
    gc.collect()
    assert held() is None


def test_one_array_has_one_pointer_while_it_is_mapped(mod: ts.Module, pair: ts.Mesh, ctx: ts.Context) -> None:
    """So that two streams that use it at once are found to."""
    given = np.zeros(3, np.float32)
    for stream in (ts.Stream(pair), ts.Stream(pair)):
        ts.launch(mod.kernel["increase"], pair, grid=(1,), args=ts.pack_args(given, 3), stream=stream)
    ts.synchronize()
    assert any(each.kind == "unordered_access" for each in ctx.findings())


def test_all_ranks_share_an_array_of_the_caller(mod: ts.Module, mesh: ts.Mesh) -> None:
    """An update in place happens once on each of the eight ranks."""
    given = np.zeros(3, np.float32)
    ts.launch(mod.kernel["increase"], mesh, grid=(1,), args=ts.pack_args(given, 3))
    ts.synchronize()
    assert 1 <= given[0] <= 8
    assert given[0] == given[1] == given[2]


def test_closing_a_mesh_ends_its_streams_and_arrays(ctx: ts.Context) -> None:
    with ts.mesh(devices=[0, 1], axes={"pp": 2}) as mesh:
        stream, array = ts.Stream(mesh), ts.DeviceArray(mesh, 3)
        assert mesh.size == 2
    assert not mesh.is_open
    for ended in (stream, array, mesh):
        ended.close()
    with pytest.raises(ts.TesseraError) as caught:
        ts.Stream(mesh)
    assert caught.value.status is Status.TESS_ERR_NOT_INITIALIZED
    ts.synchronize()


def test_closing_a_context_ends_everything() -> None:
    with ts.init(environment={}) as context:
        mesh = ts.mesh(devices=[0], axes={})
        made = [mesh, ts.DeviceArray(mesh, 1), ts.PinnedArray(1), ts.Event(), ts.Stream(mesh)]
    for each in [*made, context]:
        each.close()
    assert not mesh.is_open
