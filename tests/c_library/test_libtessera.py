"""libtessera: its build, programs in C, Rust and Go that use it, and section 18's program as printed (RT-18-01)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.oracle.compositions import flash_attention
from tessera_conformance.oracle.elementwise import add
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.load import digest
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted
from tessera_reference.c_library import building
from tessera_reference.c_library.building import CannotBuild, build
from tessera_reference.cli import main
from tessera_reference.compilation.images import compile_module
from tessera_reference.mesh.topology import default

PROGRAMS = Path(__file__).parent / "programs"
STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror")
SHAPE = (1, 2, 4, 8)
KERNEL = """module model {
  kernel flash_attention_fused(Q: tensor<BxHxLxDxfp32>, K: tensor<BxHxLxDxfp32>, V: tensor<BxHxLxDxfp32>,
                               O: tensor<BxHxLxDxfp32>, B: int32, H: int32, L: int32, D: int32, scale: fp32) {
    O = %s;
  }
}
"""
ATTENTION = "op.matmul(op.softmax(op.matmul(Q, op.transpose(K, perm=[0, 1, 3, 2])) * scale, axis=3), V)"


def tool(name: str, package: str = "") -> str:
    """The path of a program; without it the test skips."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name}: apt-get install {package or name}")
    return found


def flags(libtessera: Path) -> list[str]:
    """Return the flags that pkg-config gives for the library."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(libtessera / "lib/pkgconfig")}
    command = [tool("pkg-config"), "--cflags", "--libs", "tessera"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()


@pytest.fixture
def compiled(libtessera: Path, tmp_path: Path) -> Callable[..., Path]:
    """Compile one of the programs and link it by pkg-config."""

    def compile_program(name: str, compiler: str = "gcc", *options: str) -> Path:
        target = tmp_path / f"{name}-{compiler}"
        source = str(PROGRAMS / f"{name}.c")
        command = [tool(compiler), *STRICT, *options, source, "-o", str(target), *flags(libtessera), "-pthread", "-lm"]
        subprocess.run(command, check=True)
        return target

    return compile_program


@dataclass(frozen=True)
class Sample:
    """The files that section 18's program takes, and the bits that it has to write."""

    image: Path
    inputs: Path
    output: bytes


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Attention by the program's kernel; what it has to write is the oracle's, which knows no implementation."""
    return made(tmp_path_factory.mktemp("section-18"), ATTENTION, partial(flash_attention, scale=1.0))


@pytest.fixture(scope="session")
def sum_sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """The same with a kernel that adds: of libtessera it asks the same, of Python's numerics next to nothing."""
    return made(tmp_path_factory.mktemp("sum"), "Q + K + V", lambda q, k, v: add(add(q, k), v))


def made(folder: Path, result: str, expected: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Sample:
    """The files for a kernel that computes this of its operands, as the oracle has it."""
    q, k, v = (counted("fp32", SHAPE, seed=1800 + place) for place in range(3))
    sample = Sample(folder / "model.fatbin", folder / "inputs", expected(q, k, v).data)
    targets = list(dict.fromkeys(device.target for device in default().devices))
    sample.image.write_bytes(compile_module(KERNEL % result, targets))
    sample.inputs.write_bytes(b"".join(tensor.data for tensor in (q, k, v)))
    return sample


FILES = {
    "include/tessera.h",
    "include/tessera_ext.h",
    "lib/cmake/Tessera/TesseraConfig.cmake",
    "lib/cmake/Tessera/TesseraConfigVersion.cmake",
    "lib/libtessera.so",
    "lib/pkgconfig/tessera.pc",
}


@pytest.mark.slow
def test_the_build_makes_library_headers_and_package_files(libtessera: Path) -> None:
    made = {str(path.relative_to(libtessera)) for path in libtessera.rglob("*") if path.is_file()} - {"lock"}
    assert made == FILES


@pytest.mark.slow
def test_every_declared_function_is_exported(libtessera: Path) -> None:
    """And nothing else but what Python needs to find its module."""
    listed = subprocess.run(
        [tool("nm", "binutils"), "-D", "--defined-only", str(libtessera / "lib/libtessera.so")],
        capture_output=True,
        text=True,
        check=True,
    )
    exported = {line.split()[-1] for line in listed.stdout.splitlines()}
    texts = [(libtessera / "include" / name).read_text(encoding="utf-8") for name in ("tessera.h", "tessera_ext.h")]
    declared = set(re.findall(r"^(?:tessStatus_t|const tessApi\*) (tess\w+)\(", "\n".join(texts), re.MULTILINE))
    assert len(declared) > 100
    assert exported - declared <= {"PyInit__tessera"}
    assert declared <= exported


def refused(captured: pytest.CaptureFixture[str], output: Path, *options: str) -> str:
    """The one line of a build that cannot be made."""
    assert main(["build-c-library", "--output", str(output), *options]) == 2
    out, said = captured.readouterr()
    assert out == ""
    return said.removesuffix("\n")


def test_a_missing_compiler_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "error: nocc is missing; install it (apt-get install gcc), or name another one with --cc"
    assert refused(capsys, tmp_path, "--cc", "nocc") == said


def test_a_compiler_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its message is shown, and no library is left behind."""
    assert refused(capsys, tmp_path, "--cc", "false") == "error: false ended with 1: "
    assert not (tmp_path / "lib/libtessera.so").exists()


def test_a_missing_libpython_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python that is linked into its program alone."""
    known = sysconfig.get_config_var
    monkeypatch.setattr(building.sysconfig, "get_config_var", lambda name: None if "LIB" in name else known(name))
    monkeypatch.setattr(building.sys, "base_prefix", str(tmp_path))
    with pytest.raises(CannotBuild, match=r"^libpython3.\d+.so is missing, .*apt-get install libpython3.\d+-dev, or"):
        build(tmp_path, sys.executable)


def test_missing_python_headers_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(CannotBuild, match=r"Python.h is missing; install it: apt-get install python3.\d+-dev"):
        build(tmp_path, sys.executable)


def test_a_missing_cffi_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "find_spec", lambda name: None)
    with pytest.raises(CannotBuild, match=r"^cffi is missing; install it: pip install 'tessera-conformance\[cabi\]'$"):
        build(tmp_path, sys.executable)


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "include").write_text("")
    with pytest.raises(CannotBuild, match=r"include"):
        build(tmp_path, sys.executable)


EXAMPLES = Path(__file__).parents[2] / "examples" / "c_library"
OPTIONS = {"arithmetic": ("-frounding-math",)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["handles", "memory", "threads", "arithmetic", "environment", "extensions"])
def test_the_program_finds_everything_as_expected(compiled: Callable[..., Path], name: str) -> None:
    done = subprocess.run([compiled(name, "gcc", *OPTIONS.get(name, ()))], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_program_that_loads_the_library_locally(libtessera: Path, tmp_path: Path) -> None:
    """It is not linked with it, and asks for the table of functions."""
    program = tmp_path / "table"
    include = f"-I{libtessera / 'include'}"
    subprocess.run([tool("gcc"), *STRICT, include, str(PROGRAMS / "table.c"), "-o", str(program), "-ldl"], check=True)
    done = subprocess.run([program, libtessera / "lib/libtessera.so"], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


def interpreter_says(compiled: Callable[..., Path], **environment: str) -> tuple[int, str]:
    """The exit code of a program whose library cannot start, and what is on its standard error."""
    done = subprocess.run([compiled("dead")], capture_output=True, text=True, env=environment, timeout=300)
    return done.returncode, done.stderr


@pytest.mark.slow
def test_a_dead_interpreter_is_not_initialized(compiled: Callable[..., Path]) -> None:
    """Every call says so, and one line says why."""
    code, said = interpreter_says(compiled, TESSERA_PYTHON="/nowhere/python")
    assert code == 0, said
    assert said == "libtessera: TESSERA_PYTHON is /nowhere/python, which cannot be run; expected the path of a Python\n"


@pytest.mark.slow
def test_a_python_without_the_reference(compiled: Callable[..., Path], tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    code, said = interpreter_says(compiled, TESSERA_PYTHON=str(tmp_path / "bare/bin/python"))
    assert code == 0, said
    assert len(said.splitlines()) == 1
    assert "cannot import _cffi_backend (No module named '_cffi_backend'); expected a Python" in said


@pytest.mark.slow
def test_what_is_no_python(compiled: Callable[..., Path]) -> None:
    """A program that can be run, but is no interpreter near any standard library."""
    code, said = interpreter_says(compiled, TESSERA_PYTHON="/bin/false")
    assert code == 0, said
    assert "libtessera: " in said


@pytest.mark.slow
def test_the_example_in_rust(libtessera: Path, tmp_path: Path) -> None:
    program = tmp_path / "all_reduce"
    linked = [f"-Lnative={libtessera / 'lib'}", f"-Clink-arg=-Wl,-rpath,{libtessera / 'lib'}"]
    subprocess.run([tool("rustc"), *linked, str(EXAMPLES / "all_reduce.rs"), "-o", str(program)], check=True)
    assert subprocess.run([program], capture_output=True, text=True, timeout=300).stdout == "[11.0, 22.0, 33.0, 44.0]\n"


@pytest.mark.slow
def test_the_example_in_go(libtessera: Path, tmp_path: Path) -> None:
    go = tool("go", "golang-go")
    environment = {
        "PATH": f"{Path(go).parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "GOFLAGS": "-mod=mod",
        "GOTOOLCHAIN": "local",
        "PKG_CONFIG_PATH": str(libtessera / "lib/pkgconfig"),
        "CGO_LDFLAGS_ALLOW": "-Wl,-rpath.*",
    }
    program = tmp_path / "all_reduce"
    command = [go, "build", "-o", str(program), str(EXAMPLES / "all_reduce.go")]
    subprocess.run(command, check=True, env=environment, cwd=tmp_path)
    assert subprocess.run([program], capture_output=True, text=True, timeout=300).stdout == "[11 22 33 44]\n"


SOURCE = PROGRAMS / "section_18.c"
CMAKE = f"""cmake_minimum_required(VERSION 3.13)
project(sample C)
find_package(Tessera 1.0 REQUIRED)
add_executable(sample "{SOURCE}")
target_link_libraries(sample PRIVATE Tessera::tessera)
"""


def output_of(command: list[str], **options: object) -> bytes:
    """Return the standard output of a command that succeeds without an error message."""
    done = subprocess.run(command, capture_output=True, timeout=900, **options)  # type: ignore[call-overload]
    assert (done.returncode, done.stderr) == (0, b"")
    return bytes(done.stdout)


@pytest.mark.slow
def test_the_program_is_the_printed_one() -> None:
    """Between the two lines of dashes stand the lines whose digest the clause has."""
    lines = SOURCE.read_text(encoding="utf-8").split("/* -------- */\n")[1].splitlines()
    assert digest(lines) == load_registry(clauses_directory()).clause("RT-18-01").source


@pytest.mark.slow
def test_the_program_gives_the_right_bits(compiled: Callable[..., Path], sample: Sample) -> None:
    """From the root of the file system and without any environment variable."""
    command = [str(compiled("section_18")), str(sample.image), str(sample.inputs)]
    assert output_of(command, cwd="/", env={}) == sample.output


@pytest.mark.slow
def test_the_program_runs_in_an_environment_for_another_python(
    compiled: Callable[..., Path], sample: Sample, tmp_path: Path
) -> None:
    """Variables and modules that would mislead an interpreter do not reach this one; clang compiled it."""
    (tmp_path / "numpy.py").write_text("raise SystemExit('the wrong numpy')")
    misleading = {"PYTHONHOME": "/nowhere", "PYTHONPATH": str(tmp_path), "PYTHONSTARTUP": "nowhere", "LC_ALL": "none"}
    command = [str(compiled("section_18", "clang")), str(sample.image), str(sample.inputs)]
    assert output_of(command, cwd=tmp_path, env=os.environ | misleading) == sample.output


@pytest.mark.slow
def test_a_library_that_was_moved_is_found_and_finds_its_python(
    libtessera: Path, sample: Sample, tmp_path: Path
) -> None:
    """By pkg-config and by CMake, with which the program is linked here."""
    cmake, moved = tool("cmake"), tmp_path / "moved"
    shutil.copytree(libtessera, moved)
    assert f"-L{moved}/lib/pkgconfig/../../lib" in flags(moved)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    build = tmp_path / "build"
    configured = [cmake, "-S", str(tmp_path), "-B", str(build), f"-DCMAKE_PREFIX_PATH={moved}"]
    subprocess.run(configured, check=True, capture_output=True)
    subprocess.run([cmake, "--build", str(build)], check=True, capture_output=True)
    assert output_of([str(build / "sample"), str(sample.image), str(sample.inputs)], env={}) == sample.output


@pytest.mark.whole
@pytest.mark.slow
def test_memcheck_finds_no_error(compiled: Callable[..., Path], sum_sample: Sample) -> None:
    """The suppressions say why what they hide is no error of ours. No code here changes while it runs."""
    suppressions = Path(__file__).parent / "valgrind.supp"
    options = ["--quiet", "--error-exitcode=9", "--leak-check=no", "--keep-stacktraces=none"]
    options += ["--smc-check=none", f"--suppressions={suppressions}"]
    command = [tool("valgrind"), *options, str(compiled("section_18")), str(sum_sample.image), str(sum_sample.inputs)]
    assert output_of(command, env={"OPENBLAS_NUM_THREADS": "1", "PATH": os.defpath}) == sum_sample.output
