"""Products by TOSA's reference model, in a process of their own, since its package wants an older numpy.

    python tosa_products.py OPERANDS.npz PRODUCTS.npz

Operands are fp32 values, or bf16 codes as uint16, in pairs a0, b0, a1, b1, ...; products p0, p1, ... are fp32.
"""

from __future__ import annotations

import sys

import numpy as np
import tosa_model


def main(operands: str, products: str) -> None:
    """Read the pairs, write their products."""
    given = np.load(operands)
    results = {}
    for place in range(len(given.files) // 2):
        a, b = given[f"a{place}"], given[f"b{place}"]
        dtype = "bf16" if a.dtype == np.uint16 else "fp32"
        results[f"p{place}"] = tosa_model.matmul(dtype, *a.shape, b.shape[1])(a, b)
    np.savez(products, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
