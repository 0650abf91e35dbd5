"""Parameter layouts: where the arguments of a kernel lie, how long they are, and how long the buffer is."""

from __future__ import annotations

from tessera_conformance.chapters.abi.kit.parameter_buffers import SAMPLE, layout, signature
from tessera_conformance.oracle.parameter_buffers import SIZES
from tessera_conformance.vectors.building import Question, Topic

topic = Topic(__doc__)

SCALARS = [name for name in SIZES if name != "ptr"]


@topic.vector("sample", "RT-10.1-05", "RT-10.1-08", "RT-10.1-09", "RT-10.1-10", "RT-10.1-11", "RT-10.1-12")
def sample() -> Question:
    """The kernel of the specification: 0x34 bytes of arguments in a buffer of 0x38."""
    return layout(SAMPLE)


@topic.vector("alone/{dtype}", dtype=SCALARS)
def alone(dtype: str) -> Question:
    """One scalar."""
    return layout(signature(("x", dtype)))


@topic.vector("after-a-byte/{dtype}", "RT-09-06", dtype=SCALARS)
def after_a_byte(dtype: str) -> Question:
    """A scalar behind a byte, and another byte behind it."""
    return layout(signature(("a", "int8"), ("x", dtype), ("b", "int8")))


@topic.vector("before-a-pointer/{dtype}", "RT-10.1-05", dtype=SCALARS)
def before_a_pointer(dtype: str) -> Question:
    """A scalar that is declared before a pointer stays there."""
    return layout(signature(("n", dtype), ("x", "ptr"), ("m", dtype)))


@topic.vector("rising", "RT-10.1-13")
def rising() -> Question:
    """Sizes 1, 2, 4, 8 and 16, each with the padding that it needs."""
    return layout("k(int8 a, fp16 b, int c, double d, complex128 e)")


@topic.vector("falling", "RT-10.1-13")
def falling() -> Question:
    """Sizes 16, 8, 4, 2 and 1, which need no padding but the last."""
    return layout("k(complex128 a, x*, float b, bf16 c, bool d)")


@topic.vector("alternating", "RT-10.1-13")
def alternating() -> Question:
    """Every pointer stands behind a bool and seven bytes of padding."""
    return layout("k(bool a, w*, bool b, x*, bool c, y*, bool d)")


@topic.vector("c-aligns-it-to-four", "RT-09-06")
def c_aligns_it_to_four() -> Question:
    """A complex64 behind a float, where a structure of C would have no padding."""
    return layout("k(float a, complex64 z, float b)")
