"""The suite under hardship, for some minutes: the verdicts stay the same, and nothing is lost.

    python tests/soak.py --minutes 10 [--seed 1] [--files 4] [--hardships 1000] [PLACE ...]

A round draws some files of the places (default: the suite) and meets each hardship once, in a drawn order, each with
an implementation that is drawn too: the reference, or one of the fakes, which are wrong, slow or dying. The hardships:
cases shuffled, spread over processes, sharded and merged, killed at drawn moments and resumed, with a locale that is
not UTF-8, without a network, in a checkout that cannot be written, with a report on a full disk, and under each other
Python that has what the project needs. Each must have the seal of a quiet run, or end in one sentence on the full disk.
The seed decides all that is drawn.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FAKES = ROOT / "tests" / "harness" / "fakes"
MOST_KILLS = 4
PACKAGES = (
    *("numpy", "lark", "mpmath", "gmpy2", "jsonschema", "pytest", "xdist", "pycparser", "hypothesis"),
    *("fastjsonschema", "cffi", "llvmlite", "cryptography"),
)
REFERENCE = "reference"
IN_PROCESS = {
    "vendors": ("Warns", "Untidy", "Partial", "Wrong", "CarelessProducts"),
    "echo": ("Echo", "Acting", "Parallel", "Raises", "SpeaksSurrogates"),
}
DYING = ("Exits", "KillsItsProcess")
SPEAKERS = (
    *("answers_twice", "answers_with_expectations", "answers_with_malformed_tensors", "answers_with_wrong_id"),
    *("claims_nothing", "claims_what_it_lacks", "crashes_in_a_call", "dies_with_last_words", "floods_stderr"),
    *("implements_no_method", "returns_nothing", "returns_too_many_outputs", "sends_text", "speaks_another_protocol"),
    *("splits_a_message_over_lines", "splits_a_message_over_writes"),
)
SILENT = ("hangs", "closes_its_output")
IMPLEMENTATIONS: Mapping[str, Sequence[str]] = {
    REFERENCE: (f"--impl={REFERENCE}",),
    **{name: (f"--impl=py:{module}:{name}",) for module, names in IN_PROCESS.items() for name in names},
    **{name: (f"--impl=rpc:{sys.executable} -m tessera_conformance serve echo:{name}",) for name in DYING},
    **{name: (f"--impl=rpc:{sys.executable} {FAKES / 'speaker.py'} {name}",) for name in SPEAKERS},
    **{name: (f"--impl=rpc:{sys.executable} {FAKES / 'speaker.py'} {name}", "--deadline=0.2") for name in SILENT},
}
"""By name, the options that choose an implementation."""


class NotHere(Exception):
    """A hardship that this machine does not offer."""


class Soak:
    """The runs of one session, in a folder of their own."""

    def __init__(self, folder: Path, places: Sequence[str], files: int, choose: random.Random) -> None:
        self.folder, self.choose, self.files = folder, choose, files
        paths = [ROOT / place for place in places]
        self.every = [str(path) for place in paths for path in sorted(place.rglob("test_*.py")) or [place]]
        self.places: list[str] = []
        self.implementation = REFERENCE
        self.quiet: dict[str, str] = {}
        """By implementation, the seal of its quiet run."""

    def begin_round(self) -> None:
        """Draw the files of a round."""
        self.places = self.choose.sample(self.every, min(self.files, len(self.every)))
        self.quiet = {}

    def run(self, name: str, *options: str, python: str = sys.executable, **variables: str) -> tuple[int, str]:
        """Run to the end; the exit code and the output."""
        process = self.start(name, *options, python=python, **variables)
        output, _ = process.communicate(timeout=1800)
        return process.returncode, output

    def start(
        self, name: str, *options: str, python: str = sys.executable, before: Sequence[str] = (), **variables: str
    ) -> subprocess.Popen[str]:
        """Start a run whose report is in the folder of that name."""
        report = [f"--report-dir={self.folder / name}", *IMPLEMENTATIONS[self.implementation], "--evidence=all"]
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--keep-going", *report, *options, *self.places]
        return subprocess.Popen(
            [*before, python, *words],
            cwd=ROOT,
            env={**environment(), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="backslashreplace",
            start_new_session=True,
        )

    def run_in_a_space(self, name: str, *before: str) -> None:
        """Run in a space of its own, by `unshare`. Raises `NotHere` where this user may make none."""
        before = ("unshare", "--map-root-user", *before)
        if shutil.which("unshare") is None or subprocess.run([*before, "true"], check=False, stderr=-3).returncode:
            raise NotHere("unshare")
        self.start(name, before=before, PYTHONDONTWRITEBYTECODE="").communicate()

    def seal(self, name: str) -> str:
        """Return the digest in the footer of a report, which is that of all verdicts and evidence."""
        path = self.folder / name / "report.jsonl"
        last = json.loads(path.read_bytes().splitlines()[-1]) if path.exists() else {}
        return str(last.get("sha256", "no footer"))

    def settle(self, implementation: str) -> None:
        """Choose an implementation; the first time in a round, run it quietly."""
        self.implementation = implementation
        if implementation not in self.quiet:
            code, output = self.run("quiet")
            self.quiet[implementation] = self.seal("quiet")
            if self.quiet[implementation] == "no footer":
                raise SystemExit(f"the quiet run of {implementation} has no footer, exit code {code}: {output[-2000:]}")

    def difference(self, name: str) -> str:
        """Return the fault of a report whose seal is another than that of the quiet run."""
        actual, expected = self.seal(name), self.quiet[self.implementation]
        return "" if actual == expected else f"the seal is {actual:.12}, that of the quiet run {expected:.12}"


def environment() -> dict[str, str]:
    """Return the variables of every process of a soak: this checkout, and this module as a plugin."""
    paths = (ROOT / "reference", ROOT / "conformance" / "harness", ROOT / "tests", FAKES)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"}


def pytest_collection_modifyitems(items: list[object]) -> None:
    """Shuffle the cases, where this module is a plugin of a run."""
    random.Random(os.environ["TESSERA_SHUFFLE"]).shuffle(items)


def shuffled(soak: Soak) -> str:
    """The files and the cases in another order."""
    soak.choose.shuffle(soak.places)
    soak.run("shuffled", "-p", "soak", TESSERA_SHUFFLE=str(soak.choose.random()))
    return soak.difference("shuffled")


def spread(soak: Soak) -> str:
    """Over processes of xdist."""
    soak.run("spread", f"-n{soak.choose.randint(2, 3)}")
    return soak.difference("spread")


def sharded(soak: Soak) -> str:
    """In shards that are merged; a merged report is that of a run of the same places in every line but the header."""
    number = soak.choose.randint(2, 4)
    for shard in range(1, number + 1):
        soak.run(f"shard{shard}", f"--shard={shard}/{number}")
    reports = [str(soak.folder / f"shard{shard}" / "report.jsonl") for shard in range(1, number + 1)]
    command = [sys.executable, "-m", "tessera_conformance", "merge", *reports, f"--output={soak.folder / 'merged'}"]
    subprocess.run(command, env=environment(), capture_output=True, check=False)
    return soak.difference("merged")


def killed(soak: Soak) -> str:
    """Killed at drawn moments and resumed, until it ends by itself."""
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
    return soak.difference("killed")


def in_another_locale(soak: Soak) -> str:
    """In a locale without UTF-8."""
    soak.run("locale", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    return soak.difference("locale")


def without_network(soak: Soak) -> str:
    """Without any network interface."""
    soak.run_in_a_space("network", "--net")
    return soak.difference("network")


def in_a_read_only_checkout(soak: Soak) -> str:
    """With the checkout mounted so that nobody can write there."""
    mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && cd "$0" && ! touch tests/written && exec "$@"'
    soak.run_in_a_space("locked", "--mount", "sh", "-c", mount, str(ROOT))
    return soak.difference("locked")


def on_a_full_disk(soak: Soak) -> str:
    """With a report on a disk that is full: the run ends in one sentence."""
    full = soak.folder / "full"
    shutil.rmtree(full, ignore_errors=True)
    full.mkdir()
    (full / "report.jsonl").symlink_to("/dev/full")
    code, output = soak.run("full")
    sentence = "the report cannot be written" in output and "Traceback" not in output
    return "" if code and sentence else f"exit code {code}: {output[-300:]}"


def under_another_python(soak: Soak) -> str:
    """Under each Python that has the packages which this one has; images hold machine code only by llvmlite."""
    needed, used = f"import {', '.join(filter(find_spec, PACKAGES))}", 0
    for version in ("3.11", "3.12", "3.13"):
        python = shutil.which(f"python{version}")
        if python and not subprocess.run([python, "-c", needed], check=False, stderr=-3).returncode:
            used += 1
            soak.run(f"python{version}", python=python)
            if fault := soak.difference(f"python{version}"):
                return f"{version}: {fault}"
    if used < 2:
        raise NotHere("another Python with the packages of the project in PATH")
    return ""


HARDSHIPS: Mapping[str, Callable[[Soak], str]] = {
    function.__name__: function
    for function in (
        *(shuffled, spread, sharded, killed, in_another_locale),
        *(without_network, in_a_read_only_checkout, on_a_full_disk, under_another_python),
    )
}


def main() -> int:
    """Run until the time is over; 1 where a run under a hardship differs from the quiet one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=4, help="files of a round")
    parser.add_argument("--hardships", type=int, default=sys.maxsize, help="end after so many")
    parser.add_argument("places", nargs="*", default=["conformance"])
    options = parser.parse_args()
    choose, begun = random.Random(options.seed), time.monotonic()
    faults = runs = 0
    with tempfile.TemporaryDirectory(prefix="tessera-soak-") as name:
        soak = Soak(Path(name), options.places, options.files, choose)
        waiting: list[str] = []
        while time.monotonic() < begun + 60 * options.minutes and runs < options.hardships:
            if not waiting:
                soak.begin_round()
                waiting = choose.sample(sorted(HARDSHIPS), len(HARDSHIPS))
            soak.settle(choose.choice([REFERENCE, choose.choice(sorted(IMPLEMENTATIONS))]))
            hardship, result = waiting.pop(), "the same"
            try:
                if fault := HARDSHIPS[hardship](soak):
                    result = f"{fault}, of {' '.join(sorted(soak.places))}"
                    faults += 1
            except NotHere as error:
                result = f"not to be had here: {error}"
            runs += 1
            print(f"{hardship:24} {soak.implementation:30} {result}", flush=True)
    minutes, peak = (time.monotonic() - begun) / 60, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    print(f"{runs} hardships, {faults} faults, seed {options.seed}, {minutes:.0f} minutes, at most {peak} MiB")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
