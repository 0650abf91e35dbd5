"""Products: the reference with the methods and features of a product alone makes it whole."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from tessera_conformance.locations import clauses_directory
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.case_index import case_index
from tessera_conformance.reports.claim import product_results
from tessera_conformance.reports.journal import read

ROOT = Path(__file__).resolve().parents[2]
FAKES = Path(__file__).parent / "fakes"
PRODUCTS = load_registry(clauses_directory()).products
ENOUGH = 100
"""Cases that a product has at least: fewer prove little."""
EVERY = 72
"""Of so many cases of a product one is asked."""


@pytest.mark.slow
@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.id)
def test_the_methods_and_features_of_a_product_are_enough(product, tmp_path, every):
    """Of its cases a sample that the ids draw; one that asks more than the product has would be missing there."""
    inside, outside = tuple(product.cases), tuple(product.without)
    names = [name for name in case_index() if name.startswith(inside) and not name.startswith(outside or "?")]
    assert len(names) >= ENOUGH
    chosen = [name for name in names if zlib.crc32(name.encode()) % every(EVERY) == 0]
    listed = tmp_path / "cases.txt"
    listed.write_text("\n".join(chosen), encoding="utf-8")
    way = ["--door=operations"] if any(name.startswith("numerics.") for name in product.methods) else []
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "smaller_suite", *way]
    command += [f"--impl=py:products_alone:{product.id.replace('-', '_')}", f"--report-dir={tmp_path}", "conformance"]
    path = os.pathsep.join([str(FAKES), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "SMALLER_SUITE": str(listed)}
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    report = read(tmp_path / "report.jsonl")
    result = product_results(report.plan, report.observed)[product.id]
    lost = [
        f"{line['case']}: {line['verdict']}: {line['reason']}"
        for line in report.observed
        if line["verdict"] not in ("pass", "unsupported", "inapplicable") and {*line["needs"]} <= {*product.features}
    ]
    assert result.whole, "\n".join(lost[:20])
