"""Sparse memory against an array of bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.host_io.machine import PAGE, SparseMemory

SIZE = 4 * PAGE
STEPS = st.tuples(
    st.integers(0, SIZE - 1) | st.sampled_from([PAGE - 1, PAGE, 2 * PAGE + 1]),
    st.integers(1, SIZE) | st.integers(1, 20),
    st.sampled_from([b"\1", b"\2\3", b"\4\5\6\7"]),
    st.booleans(),
)


@given(st.lists(STEPS, max_size=6))
def test_memory_is_an_array_of_bytes(steps: list[tuple[int, int, bytes, bool]]) -> None:
    memory, plain, written = SparseMemory(), bytearray(SIZE), bytearray(SIZE)
    for pa, count, element, fills in steps:
        nbytes = min(count, SIZE - pa) // len(element) * len(element)
        data = element * (nbytes // len(element))
        if fills and nbytes:
            memory.fill(pa, nbytes, element)
        else:
            memory.write(pa, data)
        plain[pa : pa + nbytes] = data
        written[pa : pa + nbytes] = b"\1" * nbytes
        assert memory.read(0, SIZE) == plain
        assert memory.read(pa, nbytes) == data
        assert memory.was_written(pa, SIZE - pa) == all(written[pa:])
