"""Threads that share a context and a mesh: one lock around every call (docs/python.md)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import tessera_reference as ts

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
            found = array.get(stream=stream)
            array.close()
            stream.close()
            if not (np.array_equal(y, x + x) and np.array_equal(found, 4 * x)):
                wrong.append(f"thread {thread}, turn {turn}")
        return wrong

    with ThreadPoolExecutor(THREADS) as pool:
        assert [each for found in pool.map(work, range(THREADS)) for each in found] == []


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
