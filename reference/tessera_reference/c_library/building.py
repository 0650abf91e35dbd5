"""Build of the shared library for the running Python, from C source made of the headers."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

from cffi import FFI

from ..abi.status import RUNTIME_VERSION, extension_header, header

# The C source of the library, made from the headers: cffi's declarations, and a function for each declaration.
#
# A function in C passes its arguments to the function in Python of its name, with the prefix `py_`. Handles and
# pointers become numbers and structures their addresses, which Python reads fastest.


MODULE = "_tessera"

FUNCTION = re.compile(r"^tessStatus_t (tess\w+)\(([^;]*)\);", re.MULTILINE)
STRUCTURE = re.compile(r"^typedef struct (?:\w+ )?\{[^}]*\} \w+;", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
PARAMETER = re.compile(r"(.*?)\s*(\w+)")

NUMBERS = ("size_t", "int64_t", "double", "int")
STRUCTURES = ("tessMeshAxes", "tessLaunchConfig", "tessNumericsPolicy")
PYTHON_ASKS = """
  uintptr_t process_reserve(uint64_t* bytes);
  int process_open(uintptr_t address, uint64_t bytes);
  int process_close(uintptr_t address, uint64_t bytes);
  int process_holds(uintptr_t address, uint64_t bytes);
  const char* process_variable(size_t place);
"""
"""Functions of `library.c`."""

START = """
import sys
from _tessera import ffi, lib

answer = 0

@ffi.def_extern()
def py_alive():
    return answer

try:
    from tessera_reference.c_library.serving import serve
    serve(ffi, lib)
    answer = 0x7E55
except BaseException as error:
    print(f"libtessera: {type(error).__name__}: {error}", file=sys.stderr)
"""
"""The first statements of the interpreter. Their result is ALIVE of `library.c`."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function: its type in C, and the type and the value that Python receives."""

    type: str
    name: str

    @property
    def crossing(self) -> tuple[str, str]:
        """The type and the expression."""
        kind, name = self.type, self.name
        if kind in NUMBERS or kind in ("const char*", "const int*"):
            return kind, name
        if kind in STRUCTURES:
            return f"const {kind}*", f"&{name}"
        if kind.removeprefix("const ").rstrip("*") in STRUCTURES:
            return kind, name
        if (kind == "void*" and name == "out") or kind == "char*":
            return "char*", f"(char*){name}"
        if kind in ("int*", "int64_t*", "size_t*"):
            return kind, name
        if kind in ("void*", "const void*") or kind.endswith("_t"):
            return "uintptr_t", f"(uintptr_t){name}"
        if kind == "void**" or kind.endswith("_t*"):
            return "uintptr_t*", f"(uintptr_t*){name}"
        return "int", f"(int){name}"


@dataclass(frozen=True)
class Function:
    """A function of a header."""

    name: str
    parameters: tuple[Parameter, ...]

    @property
    def crossing(self) -> str:
        """The prototype of the function in Python."""
        return f"int py_{self.name}({', '.join(parameter.crossing[0] for parameter in self.parameters) or 'void'})"

    @property
    def definition(self) -> str:
        """The function in C."""
        parameters = ", ".join(f"{parameter.type} {parameter.name}" for parameter in self.parameters) or "void"
        handed = ", ".join(parameter.crossing[1] for parameter in self.parameters)
        return f"""EXPORTED tessStatus_t {self.name}({parameters}) {{
  Arithmetic saved;
  int status;
  if (!enter(&saved)) return TESS_ERR_NOT_INITIALIZED;
  status = py_{self.name}({handed});
  leave(&saved);
  return (tessStatus_t)status;
}}
"""


def c_source() -> str:
    """Return the text of the library. Raises `ValueError` for a header that cannot be read."""
    standard = list(_functions(header()))
    functions = [*standard, *_functions(extension_header())]
    structures = [match[0] for match in STRUCTURE.finditer(COMMENT.sub("", header())) if "tessApi" not in match[0]]
    ffi = FFI()
    ffi.cdef("\n".join(structures) + PYTHON_ASKS)
    ffi.cdef(
        'extern "Python" {\n  int py_alive(void);\n'
        + "".join(f"  {function.crossing};\n" for function in functions)
        + "}"
    )
    ffi.set_source(MODULE, "\n".join(_text(standard, functions)))
    ffi.embedding_api("")
    ffi.embedding_init_code(START)
    return _emitted(ffi)


def _functions(text: str) -> Iterator[Function]:
    for name, parameters in FUNCTION.findall(COMMENT.sub("", text)):
        split = [] if parameters == "void" else [" ".join(word.split()) for word in parameters.split(",")]
        yield Function(name, tuple(_parameter(parameter) for parameter in split))


def _parameter(text: str) -> Parameter:
    match = PARAMETER.fullmatch(text)
    if match is None:
        raise ValueError(f"the header has a parameter {text!r}, which cannot be read")
    return Parameter(match[1], match[2])


def _text(standard: Iterable[Function], functions: Iterable[Function]) -> Iterator[str]:
    """Yield the C text after the headers: prototypes for Python, common code, the functions, the table."""
    yield '#include "tessera.h"\n#include "tessera_ext.h"\n'
    yield "static int py_alive(void);"
    yield from (f"static {function.crossing};" for function in functions)
    yield files(__package__).joinpath("library.c").read_text(encoding="utf-8")
    yield from (function.definition for function in functions)
    yield "static const tessApi api = {"
    yield "  sizeof(tessApi), TESS_ABI_MAJOR, TESS_ABI_MINOR,"
    yield "".join(f"  {constant.name},\n" for constant in standard) + "};\n"
    yield "EXPORTED const tessApi* tessGetApi(void) { return &api; }"


def _emitted(ffi: FFI) -> str:
    """Return the whole source, with the parts that cffi adds."""
    written = StringIO()
    with redirect_stdout(StringIO()):  # cffi prints progress messages
        ffi.emit_c_code(written)
    return written.getvalue()


# Building the library for the running Python: C source, headers, and files for pkg-config and CMake.
#
# The library is linked with the libpython of this Python, and finds it again by its path.


DATA = (
    "lib/pkgconfig/tessera.pc",
    "lib/cmake/Tessera/TesseraConfig.cmake",
    "lib/cmake/Tessera/TesseraConfigVersion.cmake",
)
OPTIONS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wno-deprecated-declarations")


class CannotBuild(Exception):
    """A tool is missing, and the message says how to get it; or the compiler failed, with its message."""


@dataclass(frozen=True)
class PythonLibrary:
    """The libpython of this interpreter: its folder, the name to link it by, and the folder of its headers."""

    folder: Path
    name: str
    headers: Path


def build(output: Path, compiler: str = "gcc") -> list[Path]:
    """Make everything in a folder, and return the files. Raises `CannotBuild`."""
    command = _compiler(compiler)
    python = _python_library()
    if find_spec("cffi") is None:
        raise CannotBuild("cffi is missing; install it: pip install 'tessera-conformance[cabi]'")

    try:
        files = list(_data_files(output))
        library = output / "lib" / "libtessera.so"
        with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
            source, linked = Path(scratch) / "tessera.c", Path(scratch) / "libtessera.so"
            source.write_text(c_source(), encoding="utf-8")
            _compile(command, python, output / "include", source, linked)
            linked.replace(library)  # running programs keep the old library
    except OSError as error:
        raise CannotBuild(f"{error.filename or output}: {error.strerror}") from error
    return [library, *files]


def _compiler(command: str) -> list[str]:
    """Return the words of a compiler's command."""
    words = shlex.split(command)
    if not words or shutil.which(words[0]) is None:
        name = words[0] if words else "the compiler"
        raise CannotBuild(f"{name} is missing; install it (apt-get install gcc), or name another one with --cc")
    if sys.platform != "linux":
        raise CannotBuild(f"libtessera is for Linux; this is {sys.platform}")
    return words


def _python_library() -> PythonLibrary:
    """Return the shared libpython of this interpreter."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").is_file():
        allowed = f"install it: apt-get install python{version}-dev, or take a Python that has its headers"
        raise CannotBuild(f"{headers / 'Python.h'} is missing; {allowed}")
    name = f"python{sysconfig.get_config_var('LDVERSION') or version}"
    folders = [Path(sysconfig.get_config_var(variable) or "/") for variable in ("LIBDIR", "LIBPL")]
    folders += [folders[0] / (sysconfig.get_config_var("MULTIARCH") or ""), Path(sys.base_prefix) / "lib"]
    for folder in folders:
        if (folder / f"lib{name}.so").exists():
            return PythonLibrary(folder.resolve(), name, headers)
    allowed = f"install it: apt-get install libpython{version}-dev, or build Python with --enable-shared"
    raise CannotBuild(f"lib{name}.so is missing, the shared library of {sys.executable}; {allowed}")


def _data_files(output: Path) -> Iterator[Path]:
    """Write the files that are not compiled, and yield them."""
    version = ".".join(map(str, RUNTIME_VERSION))
    texts = {"include/tessera.h": header(), "include/tessera_ext.h": extension_header()}
    for name in DATA:
        text = files(__package__).joinpath(Path(name).name + ".in").read_text(encoding="utf-8")
        texts[name] = text.replace("@VERSION@", version)
    for name, text in texts.items():
        path = output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        yield path


def _compile(compiler: Sequence[str], python: PythonLibrary, include: Path, source: Path, linked: Path) -> None:
    # The interpreter's own name, not what it links to: that of a virtual environment is what finds its packages
    built_by = os.path.abspath(sys.executable).replace("\\", "\\\\").replace('"', '\\"')
    done = subprocess.run(
        [
            *compiler,
            *OPTIONS,
            f"-I{include}",
            f"-I{python.headers}",
            f'-DBUILT_BY="{built_by}"',
            str(source),
            "-o",
            str(linked),
            f"-L{python.folder}",
            f"-l{python.name}",
            f"-Wl,-rpath,{python.folder}",
            "-Wl,-soname,libtessera.so",
            "-pthread",
            "-ldl",
        ],
        capture_output=True,
        text=True,
        errors="replace",
    )
    if done.returncode:
        raise CannotBuild(f"{shlex.join(compiler)} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
