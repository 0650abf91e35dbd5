"""The constants of the elementary functions against MPFR, and mpmath, which waits until a function needs it."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import gmpy2
import pytest

from tessera_reference.numerics import libmp
from tessera_reference.numerics.elementary.tables import BITS, LN2, PI


@pytest.mark.parametrize(("constant", "computed"), [(LN2, gmpy2.const_log2), (PI, gmpy2.const_pi)], ids=["LN2", "PI"])
def test_it_has_the_bits_that_mpfr_computes(constant: Fraction, computed: object) -> None:
    """To nearest, all 300 of them."""
    assert callable(computed)
    assert constant == Fraction(*computed(BITS).as_integer_ratio())


def test_a_process_that_computes_no_element_does_without_mpmath() -> None:
    code = (
        "import sys, tessera_reference.adapter, tessera_reference.numerics as numerics\n"
        "from tessera_reference.numerics.elementary import exponential, trigonometric\n"
        "assert 'mpmath' not in sys.modules and 'gmpy2' not in sys.modules\n"
        "from tessera_reference.numerics import libmp\n"
        "assert libmp.mpf_pi(10, 'n') and 'mpmath' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_mpmath_has_not_is_told() -> None:
    with pytest.raises(AttributeError, match="mpf_nothing"):
        _ = libmp.mpf_nothing
