"""Contexts, meshes, modules, streams and events of the binding; the package, its listing of section 5, and threads."""

from __future__ import annotations

import ast
import gc
import inspect
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

import tessera_reference as ts
from tessera_reference import binding
from tessera_reference.abi.status import Status
from tessera_reference.runtime.api import Runtime


def test_without_init_there_is_no_context() -> None:
    for call in (lambda: ts.mesh(devices=[0], axes={}), ts.Event, ts.synchronize, lambda: ts.module.load(b"")):
        with pytest.raises(ts.TesseraError, match=r"call ts.init\(\) first") as caught:
            call()
        assert caught.value.status is Status.TESS_ERR_NOT_INITIALIZED


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
    assert any(finding.kind == "unordered_access" for finding in ctx.findings())


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
    for part in [*made, context]:
        part.close()
    assert not mesh.is_open


def test_every_name_of_the_binding_is_one_of_the_package() -> None:
    assert ts.__all__ == binding.__all__
    for name in binding.__all__:
        assert getattr(ts, name) is getattr(binding, name)
        assert name in dir(ts) or name in ts.__all__
    with pytest.raises(AttributeError, match="'tessera_reference' has no attribute 'nothing'"):
        _ = ts.nothing


@pytest.mark.parametrize(
    "first",
    [
        "",
        "import tessera_reference.mesh.topology, tessera_reference.collectives",
        "from tessera_reference.mesh.topology import MeshAxes",
    ],
)
def test_packages_do_not_hide_the_binding(first: str) -> None:
    """The packages `mesh` and `collectives` have names of section 5; the binding is found whichever comes first."""
    program = f"""
{first}
import tessera_reference as ts
from tessera_reference.mesh.topology import default
from tessera_reference.binding import meshes
assert ts.mesh is meshes.mesh and ts.collectives.broadcast and default().devices
from tessera_reference import mesh
assert mesh is meshes.mesh
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_importing_the_package_loads_no_other() -> None:
    program = "import sys, tessera_reference; print([n for n in sys.modules if n.startswith('tessera_reference.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_function_of_the_c_api_has_its_call_here() -> None:
    """Bindings are one to one (RT-05-07): each tess function is called somewhere, and nothing that does not exist."""
    functions = {name for name, _ in inspect.getmembers(Runtime, inspect.isfunction) if name.startswith("tess")}
    called = {
        str(ast.literal_eval(node.args[0]))
        for path in Path(str(binding.__file__)).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)
        if ast.unparse(node.func).rpartition(".")[2] in ("call", "_queue")
    } | {"tessGetVersion"}  # which needs no context
    assert {name for name in functions if not name.startswith("tessx")} <= called <= functions


LISTING = """
    import tessera_reference as ts

    ctx = ts.init()
    mesh = ts.mesh(devices=range(8), axes=dict(tp=2, dp=4))

    mod  = ts.module.load(open("model.fatbin","rb").read())
    kern = mod.kernel["flash_attention_fused"]

    argbuf = ts.pack_args(Q, K, V, O, B, H, L, D, scale=1.0)
    ts.launch(kern, mesh, grid=(256,1,1), block=(128,1,1), args=argbuf, stream=ts.default_stream())

    ts.collectives.all_reduce(mesh, grads, op="sum", axis="dp")
"""


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """softmax(q k^T) v, in fp64."""
    scores = np.einsum("bhld,bhmd->bhlm", q.astype(float), k.astype(float))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhlm,bhmd->bhld", weights / weights.sum(-1, keepdims=True), v.astype(float))


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_the_listing_runs_as_printed(image: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file and the arrays are ours. Afterwards the arrays themselves hold the results, without a copy back."""
    monkeypatch.chdir(tmp_path)
    Path("model.fatbin").write_bytes(image)
    shape = B, H, L, D = 2, 2, 4, 8  # noqa: N806
    draw = np.random.default_rng(5)
    q, k, v = (draw.standard_normal(shape).astype(np.float32) for _ in range(3))
    out, grads = np.zeros(shape, np.float32), np.arange(6, dtype=np.float32)
    names = {"Q": q, "K": k, "V": v, "O": out, "B": B, "H": H, "L": L, "D": D, "grads": grads}
    exec(textwrap.dedent(LISTING), names)
    names["ts"].synchronize()
    names["ctx"].close()
    assert np.allclose(out, attention(q, k, v), rtol=1e-5, atol=1e-6)
    assert grads.tolist() == [0, 4, 8, 12, 16, 20]


THREADS = 8
TURNS = 12


@pytest.fixture
def impatient() -> Iterator[None]:
    """Threads take turns as often as the interpreter lets them."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("impatient")
def test_eight_threads_share_a_mesh(pair: ts.Mesh, image: bytes) -> None:
    """Each launches on a stream of its own, moves arrays, reduces, and is told of its own mistakes alone."""
    kernel = ts.module.load(image).kernel["twice"]
    begin = Barrier(THREADS)

    def work(thread: int) -> list[str]:
        wrong = []
        begin.wait()
        for turn in range(TURNS):
            x = np.arange(64, dtype=np.float32) + thread * 1000 + turn
            y = np.zeros_like(x)
            with pytest.raises(ts.TesseraError, match=f"x{thread}x{turn}"):
                ts.collectives.all_reduce(pair, y, op="sum", axis=f"x{thread}x{turn}")
            stream = ts.Stream(pair)
            ts.launch(kernel, pair, grid=(1,), block=(64,), args=ts.pack_args(x, y, 64), stream=stream)
            stream.synchronize()
            array = ts.DeviceArray(pair, (64,)).put(y, stream=stream)
            ts.collectives.all_reduce(pair, array, op="sum", axis="dp", stream=stream)
            stream.synchronize()
            actual = array.get(stream=stream)
            array.close()
            stream.close()
            if not (np.array_equal(y, x + x) and np.array_equal(actual, 4 * x)):
                wrong.append(f"thread {thread}, turn {turn}")
        return wrong

    with ThreadPoolExecutor(THREADS) as pool:
        assert [problem for found in pool.map(work, range(THREADS)) for problem in found] == []


@pytest.mark.usefixtures("impatient")
def test_eight_threads_make_and_close_contexts(image: bytes) -> None:
    def work(thread: int) -> float:
        for _ in range(4):
            with ts.Context(environment={}) as context, ts.Mesh([0], {"dp": 1}, context) as mesh:
                x, y = np.full(8, thread, np.float32), np.zeros(8, np.float32)
                kernel = ts.module.load(image, context).kernel["twice"]
                ts.launch(kernel, mesh, grid=(1,), block=(8,), args=ts.pack_args(x, y, 8))
                mesh.synchronize()
        return float(y[0])

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(work, range(THREADS))) == [2.0 * thread for thread in range(THREADS)]
