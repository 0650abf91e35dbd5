"""The keys of the cache distinguish shapes and dtypes of as many bytes (runtime spec 8.2; AMB-RT-85, AMB-RT-163).

A kernel that transposes a matrix is another program for 6x4 than for 4x6 or 2x12, whose elements are as many.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.cache import caching, ended, entries, image_of, used
from tessera_conformance.chapters.runtime.kit.collectives import done
from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import SUM, MeshSession
from tessera_conformance.marks import clause, feature

pytestmark = feature("env-vars")

TURN = """module caching {
  kernel turn(M: int32, N: int32, x: tensor<MxNxint32>, y: tensor<NxMxint32>) { y = op.transpose(x); }
}
"""
SHAPES = [(6, 4), (4, 6), (2, 12), (12, 2), (24, 1), (1, 24), (3, 8)]
"""Matrices of 24 elements."""


def turned(session: MeshSession, image: str, rows: int, columns: int) -> None:
    """Load the module and transpose a matrix of this shape, which gives the right elements."""
    module = session.ask("tessModuleLoad", context=session.context, image=image)["module"]
    turn(session, session.kernel_of(module, "turn"), rows, columns)


def turn(session: MeshSession, kernel: int, rows: int, columns: int) -> None:
    """Transpose a matrix of this shape."""
    count = rows * columns
    x, y = session.upload(elements("int32", *range(count))), session.allocate(4 * count)
    session.launch(kernel, packed(("int32", rows), ("int32", columns), ("ptr", x), ("ptr", y)))
    expected = [row * columns + column for column in range(columns) for row in range(rows)]
    session.check.equal(session.integers(y, count), expected, f"{rows}x{columns}, transposed")


@clause("RT-08.2-01")
def test_shapes_of_one_size_have_entries_of_their_own(impl, check, tmp_path):
    """One context for each shape: nothing is found for the next, all keys differ, and each shape finds its own."""
    image = image_of(impl, check, TURN)
    for number, shape in enumerate(SHAPES, 1):
        session = caching(impl, check, tmp_path)
        turned(session, image, *shape)
        hits, misses = used(session)
        check.true(hits == 0 and misses > 0, f"nothing is found for {shape}", (hits, misses))
        check.equal(len(entries(session)), number, "the number of entries")
        ended(session)
    session = caching(impl, check, tmp_path)
    texts = [entry["shape"] for entry in entries(session)]
    check.equal(len(set(texts)), len(SHAPES), f"the shapes that the keys {sorted(texts)} name")
    for shape in reversed(SHAPES):
        turned(session, image, *shape)
    hits, misses = used(session)
    check.true(hits > 0 and misses == 0, "every shape finds its own", (hits, misses))


@clause("RT-08.2-01")
def test_shapes_of_one_size_are_different_programs_of_a_kernel(impl, check, tmp_path):
    """One kernel of one context is launched with every shape, and with some that share an extent, twice."""
    session = caching(impl, check, tmp_path)
    kernel, shapes = session.kernel("turn", TURN), [*SHAPES, (6, 5), (2, 5), (8, 4)]
    for shape in shapes * 2:
        turn(session, kernel, *shape)
    check.equal(len(entries(session)), len(shapes), "the number of entries")


PLUS = "module caching {{ kernel plus(N: int32, x: tensor<Nx{dtype}>) {{ x = x + x; }} }}"
DOUBLED = {
    "fp16": ("003c", "0040"),
    "bf16": ("803f", "0040"),
    "fp32": ("0000803f", "00000040"),
    "int32": ("01000000", "02000000"),
}
"""For each dtype the bytes of one and two. Doubled as another dtype of its width, a one would become something else."""


@clause("RT-08.2-01")
@pytest.mark.parametrize("pair", [("fp16", "bf16"), ("fp32", "int32")], ids="-".join)
def test_dtypes_of_one_width_have_entries_of_their_own(impl, check, tmp_path, pair):
    """The same kernel over as many elements of another dtype finds nothing, and computes in its own."""
    for number, dtype in enumerate(pair, 1):
        session = caching(impl, check, tmp_path)
        kernel = session.kernel("plus", PLUS.format(dtype=dtype))
        one, two = (bytes.fromhex(element) * 8 for element in DOUBLED[dtype])
        x = session.upload(one)
        session.launch(kernel, packed(("int32", 8), ("ptr", x)))
        check.equal(session.download(x, len(one)).hex(), two.hex(), f"ones of {dtype}, doubled")
        check.equal(used(session)[0], 0, f"what {dtype} finds")
        check.equal(len(entries(session)), number, "the number of entries")
        ended(session)


TRIO = """module caching {{
  kernel trio(K: int32, M: int32, N: int32, x: tensor<Kx{}>, y: tensor<Mx{}>, z: tensor<Nx{}>) {{
    x = x + x; y = y + y; z = z + z;
  }}
}}
"""


@clause("RT-08.2-01")
@pytest.mark.parametrize("part", ["shape", "dtype"])
@pytest.mark.parametrize("place", range(3), ids=["first", "second", "third"])
def test_every_tensor_counts_in_the_key(impl, check, tmp_path, place, part):
    """One of three tensors has another shape or dtype: nothing is found, the keys differ, and all are doubled."""
    for number in (1, 2):
        lengths, dtypes = [4, 5, 6], ["int32"] * 3
        if number == 2 and part == "shape":
            lengths[place] += 3
        elif number == 2:
            dtypes[place] = "fp32"
        session = caching(impl, check, tmp_path)
        one, two = zip(*(DOUBLED[dtype] for dtype in dtypes), strict=True)
        tensors = [
            session.upload(bytes.fromhex(element) * length) for element, length in zip(one, lengths, strict=True)
        ]
        given = [*(("int32", length) for length in lengths), *(("ptr", tensor) for tensor in tensors)]
        session.launch(session.kernel("trio", TRIO.format(*dtypes)), packed(*given))
        for tensor, element, length in zip(tensors, two, lengths, strict=True):
            check.equal(session.download(tensor, 4 * length).hex(), element * length, "the elements, doubled")
        hits, misses = used(session)
        check.true(hits == 0 and misses > 0, "nothing is found", (hits, misses))
        actual = entries(session)
        check.equal(len({str(entry[part]) for entry in actual}), number, f"what the keys say of the {part}")
        ended(session)


@clause("RT-08.2-02")
def test_autotune_results_of_one_size_have_entries_of_their_own(impl, check, tmp_path):
    """96 bytes are 24 of fp32 or int32, 12 of fp64 or int64, 48 of fp16: each its own result, found again."""
    asked = [("fp32", 24), ("fp64", 12), ("int32", 24), ("fp16", 48), ("int64", 12)]
    for again in (False, True):
        for number, (dtype, count) in enumerate(asked, 1):
            session = caching(impl, check, tmp_path, 2, TESS_AUTOTUNE="1")
            session.all_reduce(session.upload(bytes(96)), count, dtype)
            session.synchronize()
            hits, misses = used(session)
            check.equal((hits > 0, misses > 0), (again, not again), f"hit and miss of {count} of {dtype}")
            check.equal(len(entries(session, "autotune")), len(asked) if again else number, "the number of results")
            ended(session)


@clause("RT-08.2-02")
def test_autotune_results_of_different_collectives_have_entries_of_their_own(impl, check, tmp_path):
    """An all-reduce, a reduce-scatter and an all-gather of one buffer (AMB-RT-04)."""
    session = caching(impl, check, tmp_path, 2, TESS_AUTOTUNE="1")
    pointer = session.upload(bytes(96))
    session.all_reduce(pointer, 24, "fp32")
    done(session, "reduce_scatter", pointer, 24, "fp32", op=SUM, axis="dp")
    done(session, "all_gather", pointer, 24, "fp32", axis="dp")
    check.equal(values_of("fp32", session.download(pointer, 96)), [0.0] * 24, "the buffer")
    actual = [(entry["kernel"], entry["shape"]) for entry in entries(session, "autotune")]
    check.equal(len(set(actual)), 3, f"the keys among {actual}")
    check.equal(used(session)[0], 0, "what is found")
