"""The guard must see each fault it is there for; so the fault is injected into this process, and taken out again."""

from __future__ import annotations

import ctypes
import platform
import sys

import pytest

from tessera_reference.numerics.environment import check_environment
from tessera_reference.numerics.errors import UnsuitableEnvironment

ON_X86_LINUX = sys.platform == "linux" and platform.machine() == "x86_64" and platform.libc_ver()[0] == "glibc"
FLUSH_TO_ZERO, DENORMALS_ARE_ZERO = 1 << 15, 1 << 6
UPWARD, DOWNWARD, TOWARD_ZERO = 2 << 13, 1 << 13, 3 << 13


def findings_under(control_bits: int) -> tuple[str, ...]:
    """Run the guard with bits of the SSE control register set: the last word of glibc's fenv_t on x86-64."""
    libm = ctypes.CDLL("libm.so.6")
    saved, changed = (ctypes.c_uint32 * 8)(), (ctypes.c_uint32 * 8)()
    assert libm.fegetenv(saved) == 0
    assert libm.fegetenv(changed) == 0
    changed[7] |= control_bits
    libm.fesetenv(changed)
    try:
        check_environment()
    except UnsuitableEnvironment as caught:
        return caught.findings
    finally:
        libm.fesetenv(saved)
    return ()


def test_this_process_is_suitable():
    check_environment()


@pytest.mark.skipif(not ON_X86_LINUX, reason="needs glibc's fenv_t on x86-64")
@pytest.mark.parametrize(
    ("fault", "named"),
    [
        (FLUSH_TO_ZERO, "subnormal results are flushed"),
        (DENORMALS_ARE_ZERO, "subnormal operands are read as zero"),
        (UPWARD, "does not round to nearest"),
        (DOWNWARD, "does not round to nearest"),
        (TOWARD_ZERO, "does not round to nearest"),
        (UPWARD, "casts from fp64 to fp32"),
    ],
)
def test_a_fault_of_the_processor_state_is_named(fault, named):
    assert any(named in finding for finding in findings_under(fault))
    check_environment()


def test_the_message_names_every_finding():
    assert str(UnsuitableEnvironment(("one", "two"))).endswith(": one; two")
