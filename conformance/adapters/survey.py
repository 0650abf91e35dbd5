"""Probe the implementations of this folder and the reference, and write what is found.

    python -m conformance.adapters.survey reports/probes

Each implementation whose library can be imported gets a folder with `README.md`, `findings.json` and one drawing for
each tree. Times, host and paths are left out, so that the same libraries on the same kind of processor give the same
files. Without arguments after the folder all are probed; names choose some: `... reports/probes numpy jax`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tessera_conformance.probe import CannotProbe, Finding, Subject, probe
from tessera_conformance.probe.commands import Row, as_markdown, as_table, draw, name_of, probe_algorithms
from tessera_conformance.reports.publish import write_text
from tessera_conformance.session import Session
from tessera_conformance.transports.locate import locate

IMPLEMENTATIONS = {
    "reference": ("tessera_reference", "reference"),
    "numpy": ("numpy", "ops:conformance.adapters.numpy_adapter:TABLE"),
    "jax": ("jax", "py:conformance.adapters.jax_adapter:make"),
    "torch": ("torch", "py:conformance.adapters.torch_adapter:make"),
}
SUBJECTS = (
    *(Subject("sum", (256,), dtype) for dtype in ("fp32", "fp64", "fp16", "bf16")),
    Subject("sum", (1000,), "fp32"),
    Subject("sum", (64, 16), "fp32", axis=0),
    *(Subject("matmul", (64, 64, 64), dtype) for dtype in ("fp32", "fp64", "fp16", "bf16")),
    Subject("matmul", (1, 256, 1), "fp32"),
    Subject("matmul", (128, 512, 128), "fp32"),
    *(Subject("all_reduce", (8, 64), dtype) for dtype in ("fp32", "bf16")),
)
INTERESTING_FLAGS = ("avx2", "fma", "f16c", "avx512f", "avx512_bf16", "avx512_fp16", "avx512_vnni", "amx_tile", "asimd")


def survey(implementation: str, directory: Path) -> None:
    """Probe one implementation and write what is found."""
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("*.svg"):
        old.unlink()
    session = Session(locate(implementation), deadline=120.0)
    sections, findings, version = [], [], ""
    rows: list[Row] = []
    try:
        for subject in SUBJECTS:
            try:
                finding = probe(session, subject)
            except CannotProbe as reason:
                print(f"  {subject}: {str(reason).splitlines()[0]}", file=sys.stderr)
                continue
            print(f"  {subject}: {finding.pattern}", file=sys.stderr)
            version = finding.implementation
            findings.append(finding.to_json())
            sections.append(as_markdown(finding, _drawn(finding, directory)))
        rows = _algorithms(session)
    finally:
        session.close()
    environment = _environment()
    facts = "".join(f"- {key}: {value}\n" for key, value in environment.items())
    write_text(directory / "README.md", f"# {version}\n\n{facts}\n" + "\n".join(sections))
    if rows:
        write_text(directory / "algorithms.md", f"# Algorithms of {version}\n\n{as_table(rows)}")
    algorithms = {"algorithms": [row.to_json() for row in rows]} if rows else {}
    whole = {"implementation": version, "environment": environment, "findings": findings, **algorithms}
    write_text(directory / "findings.json", json.dumps(whole, indent=1) + "\n")


def _algorithms(session: Session) -> list[Row]:
    """The orders of the algorithms of all-reduce; nothing where none can be chosen."""
    try:
        return probe_algorithms(session)
    except CannotProbe as reason:
        print(f"  algorithms: {str(reason).splitlines()[0]}", file=sys.stderr)
        return []


def _drawn(finding: Finding, directory: Path) -> str | None:
    if finding.tree is None:
        return None
    name = f"{name_of(finding.subject)}.svg"
    write_text(directory / name, draw(finding))
    return name


def _environment() -> dict[str, Any]:
    """The processor's features and the versions that decide about orders."""
    flags: set[str] = set()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.partition(":")[0].strip() in ("flags", "Features"):
                flags |= set(line.partition(":")[2].split())
    except OSError:
        pass
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "processor": platform.machine(),
        "features": " ".join(flag for flag in INTERESTING_FLAGS if flag in flags),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "numpy": f"{np.__version__} with {blas.get('name')} {blas.get('version')}",
    }


def main() -> int:
    """Probe what was asked for."""
    directory, names = Path(sys.argv[1] if len(sys.argv) > 1 else "reports/probes"), sys.argv[2:]
    for name, (module, implementation) in IMPLEMENTATIONS.items():
        if names and name not in names:
            continue
        if importlib.util.find_spec(module) is None:
            print(f"{name}: {module} is not installed", file=sys.stderr)
            continue
        print(name, file=sys.stderr)
        survey(implementation, directory / name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
