"""A build hook: the wheel contains the index of cases, so that its first use need not collect the suite."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CaseIndexHook(BuildHookInterface):  # type: ignore[type-arg]
    """Collects the suite for the wheel; an editable installation keeps an index in the user's cache."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the index to the files of the wheel; raise for a suite that cannot be collected."""
        if version == "editable":
            return
        self._scratch = tempfile.TemporaryDirectory()
        file = Path(self._scratch.name) / "cases.json"
        command = [sys.executable, "-m", "tessera_conformance.collection", str(file)]
        path = os.pathsep.join([str(Path(self.root) / "conformance" / "harness"), *sys.path])
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the suite cannot be collected:\n{done.stdout}{done.stderr}")
        build_data["force_include"][str(file)] = "tessera_conformance/suite/cases.json"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the index: the wheel has its copy."""
        if version != "editable":
            self._scratch.cleanup()
