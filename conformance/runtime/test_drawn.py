"""Copies and launches that the seed of a run draws, against a model of memory (runtime specification, 4.4, 4.5, 12)."""

from __future__ import annotations

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, wrapped
from tessera_conformance.chapters.runtime.kit.mesh_session import COUNT, D2D, D2H, H2D, opened
from tessera_conformance.fuzz.drawn import chooser_of, numbers
from tessera_conformance.marks import clause

STEPS = 24
ROOM = 1500
KINDS = {("host", "device"): H2D, ("device", "host"): D2H, ("device", "device"): D2D}
DIGIT = f"module m {{ kernel digit(v: int32, x: tensor<{COUNT}xint32>) {{ x = x * 10 + v; }} }}"


@clause("RT-04.4-18", "RT-04.4-19", "RT-04.4-20")
def test_drawn_copies_leave_the_bytes_of_a_model(impl, check):
    """Two dozen parts of five pieces of memory, from any place to any place of another.

    What a copy brought to the host is copied on when the stream is synchronized (AMB-RT-53).
    """
    session, choose = opened(impl, check), chooser_of(impl, "runtime/copies")
    sides = ["device", "device", "device", "host", "host"]
    model = [bytearray(numbers(choose, "int8", ROOM).data) for _ in sides]
    start = {"device": session.upload, "host": session.host}
    pointers = [start[side](bytes(data)) for side, data in zip(sides, model, strict=True)]
    brought: set[int] = set()
    for _ in range(STEPS):
        source, target = choose.shuffled(range(len(sides)))[:2]
        kind = KINDS.get((sides[source], sides[target]))
        size = choose.between(1, ROOM // 2)
        first, onto = choose.below(ROOM - size), choose.below(ROOM - size)
        if kind is not None:
            if source in brought:
                session.synchronize()
                brought.clear()
            if kind == D2H:
                brought.add(target)
            session.copy(pointers[target] + onto, pointers[source] + first, size, kind)
            model[target][onto : onto + size] = model[source][first : first + size]
    session.synchronize()
    read = {"device": session.download, "host": session.host_bytes}
    for number, (side, pointer) in enumerate(zip(sides, pointers, strict=True)):
        check.equal(read[side](pointer, ROOM).hex(), model[number].hex(), f"the memory of the {side}, piece {number}")


@clause("RT-04.5-17", "RT-12-01")
def test_drawn_launches_leave_the_numbers_of_a_model(impl, check):
    """Each appends a digit to one of three tensors, in the order of the calls."""
    session, choose = opened(impl, check), chooser_of(impl, "runtime/launches")
    kernel = session.kernel("digit", DIGIT)
    model = [choose.below(100) for _ in range(3)]
    pointers = [session.upload(elements("int32", *[value] * COUNT)) for value in model]
    for _ in range(STEPS):
        number, digit = choose.below(3), choose.below(2**20)
        session.launch(kernel, packed(("int32", digit), ("ptr", pointers[number])))
        model[number] = wrapped(model[number] * 10 + digit)
    for number, pointer in enumerate(pointers):
        check.equal(session.integers(pointer), [model[number]] * COUNT, f"tensor {number}")
