"""All benchmarks: `python benchmarks/run.py [NAME ...]`. Exit code 1 where a limit is missed.

Each benchmark is a process of its own with one thread for BLAS, and processor time is what it measures, but where it
waits for other processes. Figures of one machine mean little; the ratio to the peer, measured in turns in the same
process, is what to compare. A figure whose peer is not installed is not measured and says what to install;
`pip install '.[kernels,peers]'` brings all of them.

`--against REV` measures another revision too, by the same benchmarks. `--write` keeps the rows in
`reports/benchmarks.txt`, under the machine, date and versions, beside those of other kinds of machines, and draws
those of `growth`.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.metadata
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "reports" / "benchmarks.txt"
BENCHMARKS = (
    "matmul_fp32 matmul_bf16 softmax elementary exact_sum probe attention transformer interpreter levels memory parse "
    "packing collectives runtime host_io wsp rpc_call c_library cabi_call clauses_check startup many_machines "
    "many_ranks harness_overhead harness_recomputation growth"
).split()
MODULES = {"harness_recomputation": "harness_overhead"}
DRAWN = "growth"
THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1")
VERSIONS = ("numpy", "llvmlite", "scipy", "simpy", "ml_dtypes")


def main(arguments: list[str]) -> int:
    """Run the named benchmarks, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(BENCHMARKS)}")
    parser.add_argument("--against", metavar="REV", help="measure this revision too")
    parser.add_argument("--write", action="store_true", help=f"keep the rows in {REPORT.relative_to(ROOT)}")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if options.here:
        return _measure_here(options.names[0])
    missed = False
    with checkout(options.against) if options.against else nullcontext() as other:
        for name in options.names or BENCHMARKS:
            rows, met = measured(name, ROOT)
            print(rows, end="", flush=True)
            missed = missed or not met
            if other is not None:
                print(f"at {options.against}:\n{measured(name, other)[0]}", end="", flush=True)
            if options.write:
                keep(name, rows)
                if name == DRAWN:
                    importlib.import_module(name).draw(rows)
    return int(missed)


def measured(name: str, tree: Path) -> tuple[str, bool]:
    """Return the rows of a benchmark over the packages of a checkout, and whether all limits are met."""
    paths = [tree / "reference", tree / "conformance" / "harness", tree, Path(__file__).parent]
    search = os.pathsep.join([*map(str, paths), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, __file__, "--here", name]
    done = subprocess.run(command, env={**os.environ, **THREADS, "PYTHONPATH": search}, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        return f"{name}: cannot be measured: {(done.stderr.strip().splitlines() or ['no output'])[-1]}\n", False
    return done.stdout, done.returncode == 0


def _measure_here(name: str) -> int:
    """Print the rows of one benchmark in this process."""
    module = importlib.import_module(MODULES.get(name, name))
    found = module.measure_recomputation() if name in MODULES else module.measure()
    outcomes = found if isinstance(found, list) else [found]
    for outcome in outcomes:
        print(outcome.row(), flush=True)
    return int(not all(outcome.met for outcome in outcomes))


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """A checkout of a revision for as long as it is measured."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, revision], cwd=ROOT, check=True)
        try:
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


def keep(name: str, rows: str) -> None:
    """Put the rows of a benchmark into the report, in the order of the benchmarks; of each kind of machine the last."""
    parts = REPORT.read_text(encoding="utf-8").split("\n[") if REPORT.exists() else []
    sections = {_key(section): section for section in ("[" + part.strip("[\n") + "\n" for part in parts)}
    section = f"[{name}] {_circumstances()}\n{rows}"
    sections[_key(section)] = section
    ordered = [sections[key] for name in BENCHMARKS for key in sorted(sections) if key[0] == name]
    REPORT.write_text("\n".join(ordered), encoding="utf-8")


def _key(section: str) -> tuple[str, str]:
    """The name of a section and the kind of machine."""
    name, _, circumstances = section.lstrip("[").partition("] ")
    return name, circumstances.partition(", ")[0]


def _circumstances() -> str:
    """The kind of machine, the date and the versions."""
    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        machine = next(line.partition(": ")[2] for line in info.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        machine = platform.processor() or platform.machine()
    found = [f"Python {platform.python_version()}"]
    for package in VERSIONS:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"{machine}, {datetime.date.today().isoformat()}, {', '.join(found)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
