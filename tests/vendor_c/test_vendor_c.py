"""The native runtime of `examples/vendor_c`: its table of defects, verdicts, causes, reproducers and sanitizers."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.chapters.runtime.violators.native_vendor import library
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.cases import case_index
from tessera_conformance.reports.causes import causes
from tessera_conformance.reports.reproduce import TRIES
from tessera_reference.compilation.compiler import Compiler

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "examples" / "vendor_c"
TOOLS = ("make", "gcc")


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a build, under sanitizers where some are named."""
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)} to build the library: apt-get install {' '.join(missing)}")
    pytest.importorskip("cffi", reason="needs cffi: pip install 'tessera-conformance[cabi]'")
    built: dict[str, Path] = {}

    def build_once(sanitizers: str = "") -> Path:
        if not sanitizers:
            return library().parents[1]  # that of the violators
        if sanitizers not in built:
            folder = tmp_path_factory.mktemp("vendor-c")
            options = [f"BUILD={folder}", f"SANITIZE={sanitizers}", "CFLAGS=-O1 -g1"]
            subprocess.run(["make", "-s", "-C", str(SOURCES), *options], check=True)
            built[sanitizers] = folder
        return built[sanitizers]

    return build_once


SWITCH = re.compile(r'defect(?:_once_in)?\("([a-z0-9_]+)"')
ROWS = tomllib.loads((SOURCES / "defects.toml").read_text(encoding="utf-8"))["defect"]


def sources() -> list[Path]:
    return sorted((SOURCES / "src").glob("*.c"))


def test_every_defect_of_the_sources_stands_in_the_table_once() -> None:
    switched = {name for path in sources() for name in SWITCH.findall(path.read_text(encoding="utf-8"))}
    listed = Counter(row["name"] for row in ROWS)
    assert set(listed) == switched
    assert max(listed.values()) == 1
    assert len(listed) >= 40


def test_every_defect_breaks_a_clause_that_there_is() -> None:
    known = load_registry(clauses_directory())
    for row in ROWS:
        assert known.clause(row["clause"]).level in ("MUST", "INFO"), row["name"]
        assert row["what"], row["name"]


def test_the_sources_are_independent_of_python() -> None:
    for path in sources():
        assert "Python.h" not in path.read_text(encoding="utf-8"), path.name


LIBRARY = Path("lib") / "libacme_tessera.so"
CHAPTERS = ("conformance/runtime", "conformance/abi")
EVERY_FILE = 12
"""So many files of the chapters for one that is run; `reports/vendor_c` is of all."""
PASSES = 45
"""Fewer would mean that cases were left out."""


def test_it_exports_the_interface_and_nothing_else(build: Callable[..., Path]) -> None:
    command = ["nm", "-D", "--defined-only", "-P", str(build() / LIBRARY)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = {line.split()[0] for line in listed.splitlines()}
    assert {"tessInit", "tessProfilerStop", "tessGetApi", "tessxHello"} <= names
    assert {name for name in names if not name.startswith("tess")} == set()


@pytest.mark.slow
def test_the_headers_stand_beside_it(build: Callable[..., Path]) -> None:
    assert {path.name for path in (build() / "include").iterdir()} == {"tessera.h", "tessera_ext.h"}


@pytest.mark.slow
def test_no_case_of_its_document_counts_against_it(build: Callable[..., Path], run_suite: Callable[..., Any]) -> None:
    """Files of the chapters of the runtime document, at the level that it declares."""
    files = [path for chapter in CHAPTERS for path in sorted((ROOT / chapter).glob("test_*.py"))][::EVERY_FILE]
    done = run_suite(*map(str, files), f"--impl=cabi:{build() / LIBRARY}")
    assert done.exit_code == 0, done.output[-4000:]
    verdicts = Counter(line["verdict"] for line in done.report.observations)
    assert set(verdicts) <= {"pass", "unsupported", "inapplicable"}
    assert verdicts["pass"] >= PASSES


DEFECTS = {
    "copy_tail_lost": "tessMemcpyAsync and bytes>=256, no multiple of 64",
    "broadcast_from_rank_0": "tessBroadcast",
    "damaged_images_mismatch": "TESS_ERR_ABI_VERSION_MISMATCH where TESS_ERR_INVALID_VALUE is due",
    "negative_priority_refused": "refused with TESS_ERR_INVALID_VALUE",
}
"""Some of `defects.toml`, and what their cause says."""
FILES = ("copies", "memory", "collective_movement", "modules", "streams", "stream_order", "module_versions")


@pytest.mark.slow
def test_defects_fall_into_at_most_twice_as_many_causes(
    build: Callable[..., Path], run_suite: Callable[..., Any]
) -> None:
    files = [f"conformance/runtime/test_{name}.py" for name in FILES]
    done = run_suite(*files, f"--impl=cabi:{build() / LIBRARY}", environment={"ACME_DEFECT": ",".join(DEFECTS)})
    actual = [cause.sentence() for cause in causes(done.report)]
    assert actual, done.output[-2000:]
    assert len(actual) <= 2 * len(DEFECTS), "\n".join(actual)
    for defect, words in DEFECTS.items():
        assert any(words in sentence for sentence in actual), "\n".join([defect, *actual])


AS_EXPECTED, UNDECIDED = 0, 3


def reproduced_defects() -> list[tuple[str, str, list[str]]]:
    """Each defect that calls show, the delay of its work, and the cases of the published matrix that catch it."""
    matrix = json.loads((ROOT / "reports" / "kill-matrix.json").read_text(encoding="utf-8"))
    caught = {row["name"].partition(".")[2]: row["killers"] for row in matrix["violators"] if "native" in row["name"]}
    table = tomllib.loads((SOURCES / "defects.toml").read_text(encoding="utf-8"))["defect"]
    return [(row["name"], str(row.get("delay", "")), caught[row["name"]]) for row in table if row["name"] in caught]


def run_in(command: list[str], folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_case_is_known_for_every_defect_that_calls_show() -> None:
    shown, known = {row["name"] for row in ROWS if not {"sanitizer", "reading"} & row.keys()}, case_index()
    assert {name for name, _, cases in reproduced_defects() if not known.keys().isdisjoint(cases)} == shown


@pytest.mark.slow
@pytest.mark.sampled(100)
@pytest.mark.parametrize(("defect", "delay", "cases"), [pytest.param(*row, id=row[0]) for row in reproduced_defects()])
def test_a_defect_shows_while_it_is_on_and_no_longer(
    build: Callable[..., Path], tmp_path: Path, defect: str, delay: str, cases: list[str]
) -> None:
    case = next(case for case in cases if case in case_index())
    library = build() / "lib" / "libacme_tessera.so"
    off = {"ACME_DELAY": delay} if delay else {}
    on = {**off, "ACME_DEFECT": defect}
    command = ["reproduce", case, f"--impl=cabi:{library}", "--compiler=reference"]
    for _ in range(TRIES if delay else 1):  # a race need not show each time
        first = run_in([sys.executable, "-m", "tessera_conformance", *command], tmp_path, on)
        if first.returncode == 1:
            break
    assert first.returncode == 1, first.stdout + first.stderr
    (script,) = (tmp_path / "reproduction").glob("*.py")
    (program,) = (tmp_path / "reproduction").glob("*.c")
    options = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{build() / 'include'}", f"-Wl,-rpath,{library.parent}"]
    built = run_in(["gcc", *options, str(program), str(library), "-lpthread", "-o", "again"], tmp_path, {})
    assert built.returncode == 0, built.stderr
    for again in ([sys.executable, str(script)], ["./again"]):
        with_it, without = run_in(again, tmp_path, on), run_in(again, tmp_path, off)
        told = with_it.stdout[-2000:] + without.stdout[-2000:] + without.stderr[-2000:]
        assert without.returncode in (AS_EXPECTED, UNDECIDED), told
        assert with_it.returncode != AS_EXPECTED, told
        if without.returncode == AS_EXPECTED:
            assert with_it.returncode not in (AS_EXPECTED, UNDECIDED), told


THREADS = Path(__file__).with_name("threads.c")
PROGRAM = "module m { kernel digit(v: int32, x: tensor<2xint32>) { x = x * 10 + v; } }"
RUNTIMES = {"address,undefined": "libasan.so", "thread": "libtsan.so"}
SETTINGS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    "TSAN_OPTIONS": "halt_on_error=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1",
}
"""The interpreter that loads the library leaks, and would be told so; the program in C is looked at for leaks."""
SAMPLE = {"thread": ("test_streams.py",), "address,undefined": ("test_events.py", "test_kernel_arguments.py")}
"""Files of the chapter runtime: arguments are read in one thread."""


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", RUNTIMES)
def test_sanitizers_find_nothing_but_what_is_switched_on(
    build: Callable[..., Path], sanitizers: str, tmp_path: Path
) -> None:
    actual, folder = runtime_of(sanitizers), build(sanitizers)
    program, image = threads(folder, sanitizers, tmp_path)
    quiet = run(program, image)
    assert quiet.returncode == 0, quiet.stdout + quiet.stderr
    assert "done" in quiet.stdout
    for row in ROWS:
        if row.get("sanitizer") == sanitizers:
            noticed = run(program, image, ACME_DEFECT=row["name"])
            assert noticed.returncode != 0, row["name"]
            assert "Sanitizer" in noticed.stderr or "runtime error" in noticed.stderr, noticed.stderr
    done = sample(folder, SAMPLE[sanitizers], {**SETTINGS, "LD_PRELOAD": str(actual)}, tmp_path)
    assert done.returncode == 0, done.stdout[-4000:]


def runtime_of(sanitizers: str) -> Path:
    """The sanitizer's runtime, which a process that loads the library has to have from its start."""
    name = RUNTIMES[sanitizers]
    told = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=False).stdout
    path = Path(told.strip())
    if not path.is_absolute():
        pytest.skip(f"gcc has no {name}: apt-get install libgcc-12-dev")
    return path


def threads(folder: Path, sanitizers: str, scratch: Path) -> tuple[Path, Path]:
    """The program `threads.c`, built under the same sanitizers, and the image that it takes."""
    image, program = scratch / "digit.fatbin", scratch / "threads"
    image.write_bytes(Compiler().image(PROGRAM, ["sm_90"]))
    places = [f"-I{folder / 'include'}", f"-L{folder / 'lib'}", f"-Wl,-rpath,{folder / 'lib'}"]
    options = ["-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-fsanitize={sanitizers}", "-pthread", *places]
    options += ["-fno-sanitize-recover=all"]
    subprocess.run(["gcc", *options, str(THREADS), "-o", str(program), "-lacme_tessera"], check=True)
    return program, image


def run(program: Path, image: Path, **switched: str) -> subprocess.CompletedProcess[str]:
    """The program's end, whatever it is; here memory that is lost counts, too."""
    environment = {**os.environ, **SETTINGS, "ASAN_OPTIONS": "detect_leaks=1", **switched}
    command = [str(program), str(image)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def sample(
    folder: Path, files: Sequence[str], loading: Mapping[str, str], scratch: Path
) -> subprocess.CompletedProcess[str]:
    """A run of some files of the suite, stopped at the first case that counts against the library.

    Its environment has the sanitizer in the process that loads the library alone: that of the suite would be slower.
    """
    paths = [f"conformance/runtime/{name}" for name in files]
    set_there = shlex.join(["env", *(f"{name}={value}" for name, value in loading.items())])
    served = f"{set_there} {sys.executable} -m tessera_conformance serve cabi:{folder / LIBRARY}"
    command = [sys.executable, "-m", "pytest", "-q", "-x", *paths, f"--impl=rpc:{served}", "--compiler=reference"]
    command += [f"--report-dir={scratch / 'report'}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
