"""The suite under hardship, for some minutes: the verdicts stay the same, and nothing is lost.

    python tests/soak.py --minutes 10 [--seed 1] [PLACE ...]

First comes one quiet run of the places (default: two folders of the suite). Then, until the time is over, runs under
hardships in a random order: cases shuffled, spread over processes, sharded and merged, killed at random points and
resumed, with a locale that is not UTF-8, without a network, with a report on a full disk, and with each Python that is
installed. Each must have the seal of the quiet run, or end in one sentence on the full disk.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("conformance/abi", "conformance/ir/test_matmul.py", "conformance/ir/test_precedence.py")
FAKES = ROOT / "tests" / "harness" / "fakes"
WRONG = ("py:vendors:CarelessProducts", "py:echo:Echo")
"""Implementations that are wrong in other ways than the reference, which is right."""
MOST_KILLS = 4


class Soak:
    """The runs of one session, in a folder of their own."""

    def __init__(self, folder: Path, places: Sequence[str], choose: random.Random) -> None:
        self.folder, self.choose = folder, choose
        given = [ROOT / place for place in places]
        self.places = [str(path) for place in given for path in sorted(place.rglob("test_*.py")) or [place]]
        self.implementation = "reference"
        self.quiet: dict[str, str] = {}
        """By implementation, the seal of its quiet run."""

    def run(self, name: str, *options: str, python: str = sys.executable, **variables: str) -> tuple[int, str]:
        """Run to the end; the exit code and the output."""
        process = self.start(name, *options, python=python, **variables)
        output, _ = process.communicate(timeout=1800)
        return process.returncode, output

    def start(
        self, name: str, *options: str, python: str = sys.executable, before: Sequence[str] = (), **variables: str
    ) -> subprocess.Popen[str]:
        """Start a run whose report is in the folder of that name."""
        report = [f"--report-dir={self.folder / name}", f"--impl={self.implementation}", "--evidence=all"]
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--keep-going", *report, *options, *self.places]
        search = os.pathsep.join(map(str, (ROOT / "reference", ROOT / "conformance" / "harness", FAKES)))
        environment = {**os.environ, "PYTHONPATH": search, "PYTHONDONTWRITEBYTECODE": "1", **variables}
        return subprocess.Popen(
            [*before, python, *words],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="backslashreplace",
            start_new_session=True,
        )

    def seal(self, name: str) -> str:
        """Return the digest in the footer of a report, which is that of all verdicts and evidence."""
        path = self.folder / name / "report.jsonl"
        last = json.loads(path.read_bytes().splitlines()[-1]) if path.exists() else {}
        return str(last.get("sha256", "no footer"))

    def settle(self, implementation: str) -> None:
        """Choose an implementation; the first time, run it quietly."""
        self.implementation = implementation
        if implementation not in self.quiet:
            self.run("quiet")
            self.quiet[implementation] = self.seal("quiet")

    def same(self, name: str) -> str:
        """Return the fault of a report whose seal is another than that of the quiet run."""
        found, wanted = self.seal(name), self.quiet[self.implementation]
        return "" if found == wanted else f"the seal is {found:.12}, that of the quiet run {wanted:.12}"


def shuffled(soak: Soak) -> str:
    """The files in another order."""
    soak.choose.shuffle(soak.places)
    soak.run("shuffled")
    return soak.same("shuffled")


def spread(soak: Soak) -> str:
    """Over processes of xdist."""
    soak.run("spread", f"-n{soak.choose.randint(2, 3)}")
    return soak.same("spread")


def sharded(soak: Soak) -> str:
    """In shards that are merged; a merged report is that of a run of the same places in every line but the header."""
    number = soak.choose.randint(2, 4)
    for shard in range(1, number + 1):
        soak.run(f"shard{shard}", f"--shard={shard}/{number}")
    reports = [str(soak.folder / f"shard{shard}" / "report.jsonl") for shard in range(1, number + 1)]
    command = [sys.executable, "-m", "tessera_conformance", "merge", *reports, f"--output={soak.folder / 'merged'}"]
    search = os.pathsep.join(map(str, (ROOT / "reference", ROOT / "conformance" / "harness")))
    subprocess.run(command, env={**os.environ, "PYTHONPATH": search}, capture_output=True, check=False)
    return soak.same("merged")


def killed(soak: Soak) -> str:
    """Killed at random points and resumed, until it ends by itself."""
    shutil.rmtree(soak.folder / "killed", ignore_errors=True)
    report = soak.folder / "killed" / "report.jsonl"
    for _ in range(soak.choose.randint(1, MOST_KILLS)):
        process = soak.start("killed", *([f"--resume={report}"] if report.exists() else []))
        try:
            process.communicate(timeout=soak.choose.uniform(2, 12))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    kept = report if report.exists() and report.stat().st_size else report.with_name("resumed.jsonl")
    soak.run("killed", *([f"--resume={kept}"] if kept.exists() else []))
    return soak.same("killed")


def in_another_locale(soak: Soak) -> str:
    """In a locale without UTF-8."""
    soak.run("locale", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    return soak.same("locale")


def without_network(soak: Soak) -> str:
    """Without any network interface, where this user may make such a space."""
    before = ["unshare", "--net", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*before, "true"], check=False, stderr=-3).returncode:
        return ""
    soak.start("network", before=before).communicate()
    return soak.same("network")


def on_a_full_disk(soak: Soak) -> str:
    """With a report on a disk that is full: the run ends in one sentence."""
    full = soak.folder / "full"
    shutil.rmtree(full, ignore_errors=True)
    full.mkdir()
    (full / "report.jsonl").symlink_to("/dev/full")
    code, output = soak.run("full")
    said = "the report cannot be written" in output and "Traceback" not in output
    return "" if code and said else f"exit code {code}: {output[-300:]}"


def under_another_python(soak: Soak) -> str:
    """Under each other Python with what the project needs."""
    for version in ("3.11", "3.12", "3.13"):
        python = shutil.which(f"python{version}")
        needed = "import numpy, lark, mpmath, gmpy2, jsonschema, pytest"
        if python and not subprocess.run([python, "-c", needed], check=False, stderr=-3).returncode:
            soak.run(f"python{version}", python=python)
            if fault := soak.same(f"python{version}"):
                return f"{version}: {fault}"
    return ""


HARDSHIPS: Mapping[str, Callable[[Soak], str]] = {
    function.__name__: function
    for function in (
        *(shuffled, spread, sharded, killed, in_another_locale),
        *(without_network, on_a_full_disk, under_another_python),
    )
}


def main() -> int:
    """Run until the time is over; 1 where a run under a hardship differs from the quiet one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("places", nargs="*", default=PLACES)
    options = parser.parse_args()
    choose, limit = random.Random(options.seed), time.monotonic() + 60 * options.minutes
    faults = runs = 0
    with tempfile.TemporaryDirectory(prefix="tessera-soak-") as name:
        soak = Soak(Path(name), options.places, choose)
        waiting: list[str] = []
        while time.monotonic() < limit:
            waiting = waiting or choose.sample(sorted(HARDSHIPS), len(HARDSHIPS))
            soak.settle(choose.choice(("reference", *WRONG)))
            hardship = waiting.pop()
            fault = HARDSHIPS[hardship](soak)
            runs, faults = runs + 1, faults + bool(fault)
            print(f"{hardship:22} {soak.implementation:28} {fault or 'the same'}", flush=True)
    print(f"{runs} hardships, {faults} faults, seed {options.seed}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
