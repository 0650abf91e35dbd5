"""Shuffles: which lane's value a lane gets, and which lanes have to be there (language spec, 7.2; AMB-LANG-63)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.kernel_texts import KernelText, buffer
from tessera_conformance.chapters.ir.kit.level_programs import (
    BOTH_VENDORS,
    WARPS,
    buffers_after,
    executed_text,
    fails,
    runs_if,
    verified,
)
from tessera_conformance.chapters.ir.kit.programs import accepts_if
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

pytestmark = [feature("tile-ir-text"), clause("LANG-07.2-06")]

DTYPES = sorted(name for name, format_ in ELEMENT_FORMATS.items() if format_.words == 1)


class Shuffling(KernelText):
    """A kernel of some warps, in which each lane gets the value of another, 3 times its number and 1."""

    def __init__(self, lanes, target="sm_90"):
        super().__init__({"y": buffer("int32", lanes)}, block=(lanes, 1, 1), target=target)
        self.lanes, self.thread = lanes, self.index("thread_id")
        self.value = self.compute("add", self.compute("multiply", self.thread, self.constant(3)), self.constant(1))

    def shuffle(self, **attributes):
        """Return another lane's value."""
        made = self.op("tessera.tile.shfl.sync", self.value, gives="int32", **attributes)
        self.critical = self.line
        return made

    def leave(self, value):
        """Write a value of each lane."""
        self.store(value, self["y"], self.thread)

    def within(self, name, bound, **attributes):
        """Shuffle in the lanes whose number compares so; -1 in the others."""
        condition = self.compute(name, self.thread, self.constant(bound))
        (value,) = self.branch(condition, lambda: [self.shuffle(**attributes)], lambda: [self.constant(-1)])
        self.leave(value)


def expected(lanes, width, delta):
    """Return each lane's result: of lane + delta of its warp, its own beyond the end."""
    return [3 * (i + delta if i % width + delta < width else i) + 1 for i in range(lanes)]


@pytest.mark.parametrize("target", WARPS)
@pytest.mark.parametrize("delta", [0, 1, 5, 16, 31, 32, 63, 64, 1000])
def test_a_lane_gets_the_value_of_the_lane_delta_further_on(impl, check, delta, target):
    """In each of two warps of the target's width; beyond the end of its warp a lane keeps its own (AMB-LANG-63)."""
    width = WARPS[target]
    kernel = Shuffling(2 * width, target)
    kernel.leave(kernel.shuffle(delta=delta))
    decision = tensor_of("int32", expected(2 * width, width, delta))
    by_xor = [3 * (i ^ delta if delta < width else i) + 1 for i in range(2 * width)]
    (after,) = buffers_after(impl, check, kernel)
    check.reading("AMB-LANG-63", "xor mode", after == tensor_of("int32", by_xor) != decision)
    check.bits(after, decision)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_value_of_every_dtype_is_handed_on_unchanged(impl, check, dtype):
    """Every bit of it, to the lane one before (AMB-LANG-63)."""
    kernel = KernelText({"x": buffer(dtype, 32), "y": buffer(dtype, 32)})
    lane = kernel.index("thread_id")
    value = kernel.op("tessera.tile.shfl.sync", kernel.load(kernel["x"], lane), gives=dtype, delta=1)
    kernel.store(value, kernel["y"], lane)
    bits = 8 * ELEMENT_FORMATS[dtype].word_bytes
    words = [i * i % 3 % 2 if dtype == "bool" else 0xD1B54A32D192ED03 * (i + 1) >> 5 & (1 << bits) - 1
             for i in range(32)]  # fmt: skip
    given, got = (Tensor.from_words(dtype, (32,), codes) for codes in (words, [*words[1:], words[31]]))
    check.bits(buffers_after(impl, check, kernel, x=given)[1], got)


@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_a_warp_sums_up_by_shuffles(impl, check, target):
    """Half the width, a quarter and so on: lane 0 of each warp ends with the sum of its warp."""
    width = WARPS[target]
    kernel = Shuffling(2 * width, target)
    delta = width // 2
    while delta:
        kernel.value = kernel.compute("add", kernel.value, kernel.shuffle(delta=delta))
        delta //= 2
    first = kernel.compute("equal", kernel.lane(), kernel.constant(0))
    kernel.leave(kernel.compute("select", first, kernel.value, kernel.constant(0)))
    sums = [sum(3 * i + 1 for i in range(begin, begin + width)) for begin in (0, width)]
    y = [sums[i // width] if i % width == 0 else 0 for i in range(2 * width)]
    check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", y))


ACTIVE = {
    "half-to-itself": ("less", 16, 0, True),
    "half-to-the-other": ("less", 16, 16, False),
    "half-across-the-end": ("less", 16, 1, False),
    "other-half": ("greater_equal", 16, 1, True),
    "all-but-one": ("less", 31, 1, False),
    "all": ("less", 32, 1, True),
    "last-alone": ("equal", 31, 1, True),
    "first-alone": ("equal", 0, 1, False),
}


@pytest.mark.parametrize(("compare", "bound", "delta", "legal"), ACTIVE.values(), ids=ACTIVE)
def test_a_lane_reads_active_lanes_only(impl, check, compare, bound, delta, legal):
    """A source that takes the other branch is an error; one beyond the end is the lane itself (AMB-LANG-63)."""
    kernel = Shuffling(32)
    kernel.within(compare, bound, delta=delta)
    active = {"less": range(bound), "greater_equal": range(bound, 32), "equal": [bound]}[compare]
    if legal:
        y = [value if i in active else -1 for i, value in enumerate(expected(32, 32, delta))]
        check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", y))
    else:
        fails(impl, check, kernel)


MASKS = {
    "all": ("less", 32, 1, 0xFFFFFFFF, True),
    "lower": ("less", 32, 1, 0x0000FFFF, False),
    "lower-in-the-lower": ("less", 16, 0, 0x0000FFFF, True),
    "upper-in-the-upper": ("greater_equal", 16, 1, 0xFFFF0000, True),
    "lower-in-the-upper": ("greater_equal", 16, 1, 0x0000FFFF, False),
    "reader-outside": ("less", 32, 1, 0xFFFFFFFE, False),
    "source-outside": ("less", 32, 1, 0x7FFFFFFF, False),
    "one-missing": ("greater_equal", 16, 1, 0xFFFE0000, False),
    "none": ("less", 32, 0, 0, False),
}


@pytest.mark.parametrize(("compare", "bound", "delta", "mask", "legal"), MASKS.values(), ids=MASKS)
def test_reader_and_source_are_in_the_mask(impl, check, compare, bound, delta, mask, legal):
    """A mask has a bit for each lane that takes part; another lane neither reads nor is read (AMB-LANG-63)."""
    kernel = Shuffling(32)
    kernel.within(compare, bound, delta=delta, mask=mask)
    active = range(bound) if compare == "less" else range(bound, 32)
    if legal:
        y = [value if i in active else -1 for i, value in enumerate(expected(32, 32, delta))]
        check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", y))
    else:
        fails(impl, check, kernel)


@pytest.mark.parametrize("mask", [(1 << 64) - 1, (1 << 32) - 1], ids=["64", "32"])
def test_a_mask_is_as_wide_as_a_warp(impl, check, mask):
    """All 64 lanes of an AMD warp are in a mask of 64 bits; one of 32 leaves half of them out (AMB-LANG-63)."""
    kernel = Shuffling(128, "gfx942")
    kernel.leave(kernel.shuffle(delta=3, mask=mask))
    runs_if(impl, check, mask >> 32, kernel, tensor_of("int32", expected(128, 64, 3)))


@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "part"])
def test_lanes_that_a_block_does_not_have_are_not_read(impl, check, target, whole):
    """The last warp of a block that ends in its middle has no lane to read there (AMB-LANG-63)."""
    width = WARPS[target]
    kernel = Shuffling(width + (width if whole else width // 2), target)
    kernel.leave(kernel.shuffle(delta=1))
    runs_if(impl, check, whole, kernel, tensor_of("int32", expected(2 * width, width, 1)))


# The operation itself


FORMS = {
    "mask": "{mask = 4294967295, delta = 1}",
    "hexadecimal": "{mask = 0xffffffff, delta = 1}",
    "upper-case": "{mask = 0xFFFFFFFF, delta = 1}",
    "no-mask": "{delta = 1}",
}


@clause("LANG-02.1-02")
@pytest.mark.parametrize("form", FORMS)
def test_a_mask_is_written_in_hexadecimal_too(impl, check, form):
    """0xffffffff is every lane of 32, and so is no mask (AMB-LANG-31, AMB-LANG-63)."""
    kernel = Shuffling(32)
    kernel.leave(kernel.shuffle(delta=1))
    text = kernel.module.replace("{delta = 1}", FORMS[form])
    outputs = check.returns(executed_text(impl, text, "tile"))["outputs"]
    check.bits(outputs[0], tensor_of("int32", expected(32, 32, 1)))


@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        ("(%n) {delta = 1} : (int32) -> int32", "(%n) {delta = -1} : (int32) -> int32"),
        ("(%n) {delta = 1} : (int32) -> int32", "(%n) : (int32) -> int32"),
        ("(%n) {delta = 1} : (int32) -> int32", "(%n) {delta = 1} : (int32) -> fp32"),
        ("(%n) {delta = 1} : (int32) -> int32", "(%n) {delta = 1, mode = 1} : (int32) -> int32"),
        ("(%n) {delta = 1, mask = 1} : (int32) -> int32", "(%n) {delta = 1, mask = -1} : (int32) -> int32"),
        ("(%n) {delta = 1} : (int32) -> int32", "() {delta = 1} : () -> int32"),
    ],
    ids=["negative-delta", "no-delta", "type", "mode", "negative-mask", "no-value"],
)
def test_a_shuffle_is_verified(impl, check, legal, illegal):
    """It has a value, a delta of at least 0 and a mask; the result is of the value's type."""
    for form in (legal, illegal):
        kernel = KernelText({"n": "int32"})
        kernel.raw(f'%r = "tessera.tile.shfl.sync"{form}')
        observation = verified(impl, kernel.module, "tile")
        accepts_if(check, form is legal, observation, category=("types", "tile"), at_line=kernel.line)
