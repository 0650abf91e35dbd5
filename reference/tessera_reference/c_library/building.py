"""Makes the library for the Python that runs this: C source, headers, and files for pkg-config and CMake.

The library is linked with the libpython of this Python, and finds it again by its path.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from ..abi.header import extension_header, header
from ..abi.version import RUNTIME_VERSION

__all__ = ["CannotBuild", "build"]

DATA = (
    "lib/pkgconfig/tessera.pc",
    "lib/cmake/Tessera/TesseraConfig.cmake",
    "lib/cmake/Tessera/TesseraConfigVersion.cmake",
)
OPTIONS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wno-deprecated-declarations")


class CannotBuild(Exception):
    """What is missing, and how to get it; or what the compiler says."""


@dataclass(frozen=True)
class PythonLibrary:
    """The libpython of this interpreter: its folder, the name to link it by, and where its headers are."""

    folder: Path
    name: str
    headers: Path


def build(output: Path, compiler: str = "gcc") -> list[Path]:
    """Make everything in a folder; returns the files. Raises `CannotBuild`."""
    command = _compiler(compiler)
    python = _python_library()
    if find_spec("cffi") is None:
        raise CannotBuild("cffi is missing; install it: pip install 'tessera-conformance[cabi]'")
    from .c_source import c_source  # needs cffi, which is an extra

    try:
        made = list(_data_files(output))
        library = output / "lib" / "libtessera.so"
        with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
            source, linked = Path(scratch) / "tessera.c", Path(scratch) / "libtessera.so"
            source.write_text(c_source(), encoding="utf-8")
            _compile(command, python, output / "include", source, linked)
            linked.replace(library)  # programs that have the old one open keep it
    except OSError as error:
        raise CannotBuild(f"{error.filename or output}: {error.strerror}") from error
    return [library, *made]


def _compiler(given: str) -> list[str]:
    """The words of a compiler's command."""
    words = shlex.split(given)
    if not words or shutil.which(words[0]) is None:
        name = words[0] if words else "the compiler"
        raise CannotBuild(f"{name} is missing; install it (apt-get install gcc), or name another one with --cc")
    if sys.platform != "linux":
        raise CannotBuild(f"libtessera is for Linux; this is {sys.platform}")
    return words


def _python_library() -> PythonLibrary:
    """The shared libpython of this interpreter."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").is_file():
        allowed = f"install it: apt-get install python{version}-dev, or take a Python that has its headers"
        raise CannotBuild(f"{headers / 'Python.h'} is missing; {allowed}")
    name = f"python{sysconfig.get_config_var('LDVERSION') or version}"
    folders = [Path(sysconfig.get_config_var(each) or "/") for each in ("LIBDIR", "LIBPL")]
    folders += [folders[0] / (sysconfig.get_config_var("MULTIARCH") or ""), Path(sys.base_prefix) / "lib"]
    for folder in folders:
        if (folder / f"lib{name}.so").exists():
            return PythonLibrary(folder.resolve(), name, headers)
    allowed = f"install it: apt-get install libpython{version}-dev, or build Python with --enable-shared"
    raise CannotBuild(f"lib{name}.so is missing, the shared library of {sys.executable}; {allowed}")


def _data_files(output: Path) -> Iterator[Path]:
    """Write what is not compiled."""
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
