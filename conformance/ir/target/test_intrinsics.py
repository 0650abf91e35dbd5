"""The instructions of each vendor at Target IR, and that the other does not have them (language spec, 8.2)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.level_programs import WARPS, buffers_after, fails, runs_if, verified
from tessera_conformance.chapters.ir.kit.programs import accepts_if
from tessera_conformance.chapters.ir.kit.target_kernels import LDS, POINTER, TargetKernel
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.tensors import Tensor

pytestmark = feature("target-ir-text")


class Device(TargetKernel):
    """A kernel of x and y whose lanes write one value each."""

    def zeros(self, type_):
        """A vector of zeros."""
        return self.op("llvm.mlir.zero", gives=type_)

    def leave(self, value):
        """Write a scalar of each thread to y."""
        self.op("llvm.store", value, self.at(self["y"], self.thread, value.type))

    def masked(self, condition, value):
        """Return `value()` in the lanes in which a condition holds, -1 in the others."""
        self.raw(f'%r = "scf.if"({condition.name}) ({{')
        made = value()
        self.raw(f'"tessera.graph.yield"({made.name}) : ({made.type}) -> ()')
        self.raw("}, {")
        other = self.number(-1, made.type)
        self.raw(f'"tessera.graph.yield"({other.name}) : ({made.type}) -> ()')
        self.raw(f"}}) : (bool) -> {made.type}")
        pointer = self.at(self["y"], self.thread, made.type)
        self.raw(f'"llvm.store"(%r, {pointer.name}) : ({made.type}, {POINTER}) -> ()')


def multiply(name, *types, **attributes):
    """A matrix instruction of zeros."""

    def write(kernel):
        operands = [kernel.zeros(type_) for type_ in types]
        kernel.op(name, *operands, gives=types[2], **attributes)

    return write


def copy_async(kernel):
    """16 bytes from global to shared memory."""
    kernel.op("nvvm.cp.async.shared.global", kernel.tile(64), kernel["x"], size=16)


def load_matrix(kernel):
    """One 8x8 matrix."""
    kernel.op("nvvm.ldmatrix", kernel.tile(64, "bf16"), gives="vector<2xbf16>", num=1, layout="row")


INTRINSICS = {
    "mma.sync": ("nvidia", "LANG-08.2-05", multiply(
        "nvvm.mma.sync", "vector<8xbf16>", "vector<4xbf16>", "vector<4xfp32>", m=16, n=8, k=16)),
    "ldmatrix": ("nvidia", "LANG-08.2-06", load_matrix),
    "cp.async": ("nvidia", "LANG-08.2-07", copy_async),
    "commit": ("nvidia", "LANG-08.2-07", lambda kernel: kernel.op("nvvm.cp.async.commit.group")),
    "wait": ("nvidia", "LANG-08.2-07", lambda kernel: kernel.op("nvvm.cp.async.wait.group", n=0)),
    "bar.sync": ("nvidia", "LANG-08.2-08", lambda kernel: kernel.op("nvvm.barrier0")),
    "shfl.sync": ("nvidia", "LANG-08.2-09", lambda kernel: kernel.op(
        "nvvm.shfl.sync.down", kernel.thread, gives="int32", delta=1)),
    "mfma": ("amd", "LANG-08.2-10", multiply(
        "rocdl.mfma.f32.16x16x16bf16.1k", "vector<4xbf16>", "vector<4xbf16>", "vector<4xfp32>")),
    "ds_read": ("amd", "LANG-08.2-11", lambda kernel: kernel.op("rocdl.ds_read", kernel.tile(64), gives="int32")),
    "ds_write": ("amd", "LANG-08.2-11", lambda kernel: kernel.op("rocdl.ds_write", kernel.thread, kernel.tile(64))),
    "barrier": ("amd", "LANG-08.2-11", lambda kernel: kernel.op("rocdl.barrier")),
    "ds_bpermute": ("amd", "LANG-08.2-12", lambda kernel: kernel.op(
        "rocdl.ds_bpermute", kernel.thread, kernel.thread, gives="int32")),
}  # fmt: skip


@pytest.mark.parametrize(
    ("vendor", "write"),
    [
        pytest.param(vendor, write, id=name, marks=clause(judged, "LANG-11-10"))
        for name, (vendor, judged, write) in INTRINSICS.items()
    ],
)
@pytest.mark.parametrize("target", WARPS)
def test_an_instruction_is_of_one_vendor(impl, check, vendor, write, target):
    """A kernel for a target of its vendor holds it, one for the other's is refused there."""
    kernel = Device(target)
    write(kernel)
    observation = verified(impl, kernel.module, "target", target)
    if (vendor == "amd") == target.startswith("gfx"):
        check.accepts(observation)
    else:
        check.rejects(observation, category="tile", phase="verify", at_line=kernel.line)


# cp.async


def staged(size=16, wait=0, barrier=True, begin=0, reverse=False):
    """Each lane copies `size` bytes of int32 from x to shared memory, and reads what it copied or its mirror did."""
    kernel, count = Device(), size // 4
    tile = kernel.tile(32 * count + 4)
    place = kernel.integers("mul", kernel.thread, count)
    from_ = kernel.at(kernel["x"], kernel.integers("add", place, begin))
    kernel.op("nvvm.cp.async.shared.global", kernel.at(tile, place), from_, size=size)
    kernel.mark()
    kernel.op("nvvm.cp.async.commit.group")
    if wait is not None:
        kernel.op("nvvm.cp.async.wait.group", n=wait)
    if barrier:
        kernel.op("nvvm.barrier0")
    if reverse:
        turned = kernel.integers("add", kernel.integers("mul", kernel.thread, -1), 31)
        place = kernel.integers("mul", turned, count)
    vector = f"vector<{count}xint32>"
    actual = kernel.op("llvm.load", kernel.at(tile, place), gives=vector)
    if begin == 0:
        kernel.mark()
    kernel.op("llvm.store", actual, kernel.at(kernel["y"], kernel.integers("mul", kernel.thread, count)))
    return kernel


def counted(count):
    """0, 1, 2 and so on, times 3."""
    return tensor_of("int32", [3 * index for index in range(count)])


@clause("LANG-08.2-07")
@pytest.mark.parametrize("size", [4, 8, 16])
def test_a_copy_moves_as_many_bytes_as_it_says(impl, check, size):
    """Behind its wait and a barrier every lane sees what another copied."""
    kernel, count = staged(size, reverse=True), size // 4
    expected = [3 * (count * (31 - index // count) + index % count) for index in range(32 * count)]
    actual = buffers_after(impl, check, kernel, x=counted(32 * count + 4), y=counted(32 * count))
    check.bits(actual[1], tensor_of("int32", expected))


EARLY = {
    "own-after-wait": ({"barrier": False}, True),
    "own-before-wait": ({"wait": None, "barrier": False}, False),
    "own-one-pending": ({"wait": 1, "barrier": False}, False),
    "other-after-both": ({"reverse": True}, True),
    "other-no-barrier": ({"reverse": True, "barrier": False}, False),
    "other-no-wait": ({"reverse": True, "wait": None}, False),
}


@clause("LANG-08.2-07")
@pytest.mark.parametrize(("steps", "legal"), EARLY.values(), ids=EARLY)
def test_a_copy_is_seen_after_its_wait(impl, check, steps, legal):
    """By the lane that copied after the wait, by others after a barrier too; earlier it is an error (AMB-LANG-64)."""
    kernel = staged(4, **steps)
    if legal:
        expected = [3 * (31 - index if "reverse" in steps else index) for index in range(32)]
        actual = buffers_after(impl, check, kernel, x=counted(36), y=counted(32))
        check.bits(actual[1], tensor_of("int32", expected))
    else:
        fails(impl, check, kernel, x=counted(36), y=counted(32))


@clause("LANG-08.2-07")
@pytest.mark.parametrize(("size", "begin"), [(16, 4), (16, 2), (8, 2), (8, 1), (4, 1)])
def test_a_copy_begins_at_a_multiple_of_its_bytes(impl, check, size, begin):
    """A copy that begins elsewhere is an error."""
    kernel, count = staged(size, begin=begin), size // 4
    given = {"x": counted(32 * count + 4), "y": counted(32 * count)}
    if begin % count == 0:
        expected = tensor_of("int32", [3 * (index + begin) for index in range(32 * count)])
        check.bits(buffers_after(impl, check, kernel, **given)[1], expected)
    else:
        fails(impl, check, kernel, **given)


@clause("LANG-08.2-07")
@pytest.mark.parametrize(
    ("written", "broken"), [("size = 16", "size = 12"), ("size = 16", "size = 32"), ("%v2, %x", "%x, %v2")]
)
def test_a_copy_is_of_4_8_or_16_bytes_from_global_to_shared_memory(impl, check, written, broken):
    """Other sizes are refused, and so is the other direction."""
    kernel = Device()
    copy_async(kernel)
    check.accepts(verified(impl, kernel.module, "target"))
    text = kernel.module.replace(written, broken)
    if broken.startswith("%"):
        text = text.replace(f"({LDS}, {POINTER})", f"({POINTER}, {LDS})")
    check.true(text != kernel.module, "the text is another one")
    check.rejects(verified(impl, text, "target"), category=("tile", "types"), at_line=kernel.line)


# Shuffles


@clause("LANG-08.2-09")
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("delta", [0, 1, 5, 16, 31])
def test_shfl_sync_down_reads_the_lane_delta_further_on(impl, check, delta, target):
    """A lane reads within its warp of 32, and keeps its own value beyond the end (AMB-LANG-63)."""
    kernel = Device(target, 64)
    value = kernel.op("llvm.load", kernel.at(kernel["x"], kernel.thread), gives="int32")
    kernel.leave(kernel.op("nvvm.shfl.sync.down", value, gives="int32", delta=delta))
    expected = [3 * (index + delta if index % 32 + delta < 32 else index) for index in range(64)]
    actual = buffers_after(impl, check, kernel, x=counted(64), y=counted(64))
    check.bits(actual[1], tensor_of("int32", expected))


@pytest.mark.parametrize(
    "target",
    [pytest.param("sm_90", marks=clause("LANG-08.2-09")), pytest.param("gfx942", marks=clause("LANG-08.2-12"))],
)
@pytest.mark.parametrize(("dtype", "bits"), [("fp16", 16), ("fp32", 32), ("int64", 64), ("fp64", 64)])
def test_a_value_is_exchanged_bit_for_bit(impl, check, dtype, bits, target):
    """Each lane has its neighbour's value: both halves of 64 bits, and exactly the 16 bits of a narrow one."""
    kernel, width = Device(target), WARPS[target]
    value = kernel.op("llvm.load", kernel.at(kernel["x"], kernel.thread, dtype), gives=dtype)
    if target == "sm_90":
        actual = kernel.op("nvvm.shfl.sync.down", value, gives=dtype, delta=1)
    else:
        address = kernel.integers("mul", kernel.integers("add", kernel.thread, 1), 4)
        actual = kernel.op("rocdl.ds_bpermute", address, value, gives=dtype)
    kernel.leave(actual)
    # A code of each half of its own, whose exponent is never all ones.
    words = [(0x3A17_0000_0000_0000 + index * 0x0000_0101_0000_1011) >> 64 - bits for index in range(width)]
    last = words[-1] if target == "sm_90" else words[0]
    given = Tensor.from_words(dtype, (width,), words)
    buffers = buffers_after(impl, check, kernel, x=given, y=given)
    check.bits(buffers[1], Tensor.from_words(dtype, (width,), [*words[1:], last]))


PERMUTATIONS = {
    "identity": (lambda lane: lane, 4, 0),
    "reverse": (lambda lane: 63 - lane, -4, 252),
    "next": (lambda lane: (lane + 1) % 64, 4, 4),
    "across-the-halves": (lambda lane: (lane + 32) % 64, 4, 128),
    "broadcast": (lambda lane: 7, 0, 28),
    "spread": (lambda lane: lane * 5 % 64, 20, 0),
    "negative": (lambda lane: (lane - 3) % 64, 4, -12),
}


@clause("LANG-08.2-12")
@pytest.mark.parametrize(("source", "factor", "offset"), PERMUTATIONS.values(), ids=PERMUTATIONS)
@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_ds_bpermute_reads_the_lane_of_a_byte_address(impl, check, source, factor, offset, target):
    """Four bytes a lane; addresses wrap around at the end of the wavefront of 64."""
    kernel = Device(target, 128)
    value = kernel.op("llvm.load", kernel.at(kernel["x"], kernel.thread), gives="int32")
    lane = kernel.integers("and", kernel.thread, 63)
    address = kernel.integers("add", kernel.integers("mul", lane, factor), offset)
    kernel.leave(kernel.op("rocdl.ds_bpermute", address, value, gives="int32"))
    expected = [3 * (index // 64 * 64 + source(index % 64)) for index in range(128)]
    actual = buffers_after(impl, check, kernel, x=counted(128), y=counted(128))
    check.bits(actual[1], tensor_of("int32", expected))


@pytest.mark.parametrize(
    "target",
    [pytest.param("sm_90", marks=clause("LANG-08.2-09")), pytest.param("gfx942", marks=clause("LANG-08.2-12"))],
)
@pytest.mark.parametrize("delta", [0, 1])
def test_an_exchange_reads_active_lanes_only(impl, check, delta, target):
    """In a branch that the lower half takes, its last lane has no neighbour to read from."""
    kernel, half = Device(target), WARPS[target] // 2

    def exchanged():
        if target == "sm_90":
            made = kernel.op("nvvm.shfl.sync.down", kernel.thread, gives="int32", delta=delta)
        else:
            address = kernel.integers("mul", kernel.integers("add", kernel.thread, delta), 4)
            made = kernel.op("rocdl.ds_bpermute", address, kernel.thread, gives="int32")
        kernel.mark()
        return made

    kernel.masked(kernel.less(kernel.thread, half), exchanged)
    given = {"x": counted(1), "y": counted(2 * half)}
    if delta == 0:
        expected = tensor_of("int32", [index if index < half else -1 for index in range(2 * half)])
        check.bits(buffers_after(impl, check, kernel, **given)[1], expected)
    else:
        fails(impl, check, kernel, **given)


@pytest.mark.parametrize(
    ("target", "write"),
    [
        pytest.param("sm_90", "mma.sync", id="mma.sync", marks=clause("LANG-08.2-05")),
        pytest.param("sm_90", "ldmatrix", id="ldmatrix", marks=clause("LANG-08.2-06")),
        pytest.param("gfx942", "mfma", id="mfma", marks=clause("LANG-08.2-10")),
    ],
)
@pytest.mark.parametrize("lanes", ["all", "half"])
def test_a_whole_warp_reaches_a_matrix_instruction(impl, check, target, write, lanes):
    """One that half of it does not reach is an error."""
    kernel, width = Device(target), WARPS[target]
    condition, one = kernel.less(kernel.thread, width if lanes == "all" else width // 2), kernel.number(1)
    if write == "ldmatrix":
        tile = kernel.tile(64, "bf16")
        pair = kernel.at(tile, kernel.integers("mul", kernel.thread, 2), "bf16")
        kernel.op("llvm.store", kernel.zeros("vector<2xbf16>"), pair)
        kernel.op("nvvm.barrier0")

    def reached():
        if write == "ldmatrix":
            row = kernel.at(tile, kernel.integers("mul", kernel.integers("and", kernel.thread, 7), 8), "bf16")
            kernel.op("nvvm.ldmatrix", row, gives="vector<2xbf16>", num=1, layout="row")
        else:
            INTRINSICS[write][2](kernel)
        kernel.mark()
        return one

    kernel.masked(condition, reached)
    given = {"x": counted(1), "y": counted(width)}
    runs_if(impl, check, lanes == "all", kernel, tensor_of("int32", [1] * width), **given)


@clause("LANG-11-01")
@pytest.mark.parametrize("extent", ["0", "?"])
@pytest.mark.parametrize("target", WARPS)
def test_a_vector_has_elements(impl, check, extent, target):
    """A number of them, at least one, as in LLVM."""
    for written in ("1", extent):
        kernel = Device(target)
        kernel.zeros(f"vector<{written}xfp32>")
        observation = verified(impl, kernel.module, "target", target)
        accepts_if(check, written == "1", observation, category=("types", "shapes", "tile", "syntax"))
