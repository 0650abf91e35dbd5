"""Writes the pictures of pages, images/report.png and images/together.png: `python docs/draw_report.py`.

The report is that of the reference with two defects, under the golden vectors of three operations: softmax adds from
left to right, and matrix products of bf16 are one unit in the last place off. Side by side with the reference stand two
runs of it; the newer one has the defect of softmax alone. The pictures are taken with chromium, which has to be on
PATH, or at $CHROMIUM.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from tessera_conformance.chapters.ir.violators.numerics import fold, softmax_with
from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.graph.reductions import Softmax

PICTURES = Path(__file__).parent / "images"
OPTIONS = ("-k", "golden and (softmax or matmul or exp)")


FOLDED = softmax_with(total=lambda x: fold(x, -1)[..., None])


class Acme(ReferenceAdapter):
    """An implementation that a vendor might have."""

    version = "2.1"

    def hello(self) -> dict[str, Any]:
        """Return the reference's greeting under another name."""
        identity = {"name": "acme-runtime", "version": self.version, "device": "acme-x1"}
        return {**super().hello(), "implementation": identity, "documents": ["language_ir"]}

    def language_execute(self, **params: Any) -> dict[str, Any]:
        """Softmax adds from left to right."""
        with mock.patch.object(Softmax, "execute", FOLDED):
            return super().language_execute(**params)


class AcmeBefore(Acme):
    """Its version before, whose matrix products were off too."""

    version = "2.0"

    def language_execute(self, **params: Any) -> dict[str, Any]:
        """The last bit of the first element is wrong where a matrix product gives bf16."""
        result = super().language_execute(**params)
        if "op.matmul" in params["source"]:
            result["outputs"] = [_off_by_one(output) for output in result["outputs"]]
        return result


def _off_by_one(tensor: Tensor) -> Tensor:
    if tensor.dtype != "bf16" or not tensor.data:
        return tensor
    return Tensor(tensor.dtype, tensor.shape, bytes([tensor.data[0] ^ 1]) + tensor.data[1:])


def run(folder: Path, implementation: str) -> None:
    """Make the report of an implementation in a folder."""
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "tessera_conformance", "run", f"--impl={implementation}", *OPTIONS]
    subprocess.run([*command, f"--report-dir={folder}"], env={**os.environ, "PYTHONPATH": path}, check=False)


def together(reports: list[Path], page: Path) -> None:
    """Make the page of several reports."""
    command = [sys.executable, "-m", "tessera_conformance", "report", *map(str, reports), "--format=html"]
    subprocess.run([*command, f"--output={page}"], check=False)


def photograph(page: str, picture: Path, height: int) -> None:
    """Keep what a browser shows of the page."""
    from playwright.sync_api import sync_playwright

    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        tab = launched.new_page(viewport={"width": 1280, "height": height}, color_scheme="light")
        tab.goto(page)
        tab.locator("main:not([aria-busy])").wait_for()
        tab.screenshot(path=picture)
        launched.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        names = {"before": "py:draw_report:AcmeBefore", "after": "py:draw_report:Acme", "reference": "reference"}
        reports = [Path(folder) / name for name in names]
        for report, implementation in zip(reports, names.values(), strict=True):
            run(report, implementation)
        photograph((reports[0] / "index.html").as_uri(), PICTURES / "report.png", 1400)
        page = Path(folder) / "together.html"
        together(reports, page)
        photograph(f"{page.as_uri()}#differ=1", PICTURES / "together.png", 1000)
