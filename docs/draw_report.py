"""Writes the picture of a report's page, images/report.png: `python docs/draw_report.py`.

The report is that of the reference with one defect, an error of one unit in the last place in every softmax of bf16,
under the golden vectors of three operations. The picture is taken with chromium, which has to be on PATH, or at
$CHROMIUM.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import ReferenceAdapter

PICTURE = Path(__file__).parent / "images" / "report.png"
SIZE = {"width": 1280, "height": 1400}
OPTIONS = ("-k", "golden and (softmax or matmul or exp)")


class Acme(ReferenceAdapter):
    """An implementation that a vendor might have."""

    def hello(self) -> dict[str, Any]:
        """As the reference's, under another name."""
        identity = {"name": "acme-runtime", "version": "2.1", "device": "acme-x1"}
        return {**super().hello(), "implementation": identity, "documents": ["language_ir"]}

    def language_execute(self, **params: Any) -> dict[str, Any]:
        """The last bit of the first element is wrong where a softmax gives bf16."""
        result = super().language_execute(**params)
        if "softmax" in params["source"]:
            result["outputs"] = [_off_by_one(output) for output in result["outputs"]]
        return result


def _off_by_one(tensor: Tensor) -> Tensor:
    if tensor.dtype != "bf16" or not tensor.data:
        return tensor
    return Tensor(tensor.dtype, tensor.shape, bytes([tensor.data[0] ^ 1]) + tensor.data[1:])


def run(folder: Path) -> None:
    """Make the report in a folder."""
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "tessera_conformance", "run", "--impl=py:draw_report:Acme", *OPTIONS]
    subprocess.run([*command, f"--report-dir={folder}"], env={**os.environ, "PYTHONPATH": path}, check=False)


def photograph(page: Path, picture: Path) -> None:
    """What a browser shows of the page, with its first failure open."""
    from playwright.sync_api import sync_playwright

    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        tab = launched.new_page(viewport=SIZE, color_scheme="light")
        tab.goto(page.as_uri())
        tab.locator("main:not([aria-busy])").wait_for()
        tab.screenshot(path=picture)
        launched.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder))
        photograph(Path(folder) / "index.html", PICTURE)
