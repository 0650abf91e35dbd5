"""The transport `cabi:`: checks that the library loads; then a process loads it and serves the line protocol."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tessera_conformance.interface import SESSION, c_functions
from tessera_conformance.transports import ImplementationUnavailable, TransportFault
from tessera_conformance.transports.cabi import carriers
from tessera_conformance.transports.cabi.options import read_options
from tessera_conformance.transports.rpc import ProcessTransport, ending

# A check before the run, in a process of its own: the library can be loaded, and exports functions of the interface.


DEADLINE = 60.0
TABLE = "tessGetApi"
MACHINES = {
    3: "x86 (32 bits)",
    8: "MIPS",
    20: "PowerPC",
    21: "PowerPC (64 bits)",
    22: "s390",
    40: "ARM (32 bits)",
    62: "x86-64",
    183: "AArch64",
    243: "RISC-V",
    258: "LoongArch",
}
"""The machine numbers of ELF files."""


def exported_by(library: str, label: str) -> frozenset[str]:
    """Return the functions of the interface that a library exports. Raises `ImplementationUnavailable`."""
    if find_spec("cffi") is None:
        raise ImplementationUnavailable(label, "cffi is not installed", "pip install 'tessera-conformance[cabi]'")
    _require_this_machine(library, label)
    functions = c_functions().values()
    exported = _exported(library, label, [*(function.name for function in functions), *SESSION, TABLE])
    if not exported:
        runtime = [function.name for function in functions if not function.extension]
        raise ImplementationUnavailable(
            label,
            f"{library} exports no function of the interface: neither {TABLE} nor any of the {len(runtime)} functions "
            f"that tessera.h declares ({', '.join(runtime[:3])}, ...), nor an extension tessx...",
            f"export them with C linkage and default visibility; `nm -D {Path(library).name}` shows what is exported",
        )
    return exported


def _exported(library: str, label: str, names: list[str]) -> frozenset[str]:
    command = [sys.executable, "-I", str(Path(__file__).with_name("load_check.py")), library, *names]
    remedy = f"load it by hand until it works: python3 -c \"import ctypes; ctypes.CDLL('{library}')\""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE, check=False)
    except subprocess.TimeoutExpired:
        problem = f"loading {library} does not end within {DEADLINE:g} s"
        raise ImplementationUnavailable(label, problem, remedy) from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        output = done.stderr.decode(errors="replace").strip()[-2000:]
        problem = f"the process that loaded {library} ended with {ending(done.returncode)}" + (
            f"\n{output}" if output else ""
        )
        raise ImplementationUnavailable(label, problem, remedy) from None
    if "problem" in answer:
        remedy = f"`ldd -r {library}` names the symbols and libraries that are missing; link them"
        raise ImplementationUnavailable(label, f"it cannot be loaded: {answer['problem']}", remedy)
    return frozenset(answer["exported"])


def _require_this_machine(library: str, label: str) -> None:
    """Raise if an ELF file is for another machine than this Python; the loader judges other kinds of files."""
    machine, own = _machine(library), _machine(sys.executable)
    if machine and own and machine != own:
        remedy = "build the library for the machine that runs the suite"
        raise ImplementationUnavailable(label, f"{library} is for {machine}; this machine is {own}", remedy)


def _machine(path: str) -> str:
    """Return the name of the machine of an ELF file; "" for another file."""
    try:
        with open(path, "rb") as file:
            start = file.read(20)
    except OSError:
        return ""
    if len(start) < 20 or start[:4] != b"\x7fELF":
        return ""
    (machine,) = struct.unpack(">H" if start[5] == 2 else "<H", start[18:20])
    bits = 64 if start[4] == 2 else 32
    return MACHINES.get(machine, f"machine {machine} of ELF, {bits} bits")


# The transport `cabi:`: a process loads the library and speaks the line protocol; faults name its last C function.


RESET_DEADLINE = 3.0
"""Seconds for the clean-up after a case: if it takes longer, restarting the process costs less."""
CHILD = "tessera_conformance.transports.cabi.child"


class CabiTransport(ProcessTransport):
    """Calls the library at `PATH[,header=FILE][,description=FILE]`.

    Raises `ImplementationUnavailable`: there is none, it cannot be loaded here, or exports nothing of the interface.
    """

    def __init__(self, place: str) -> None:
        super().__init__(f"cabi:{place}")
        self._options = read_options(place, self.label)
        self._exported = exported_by(self._options.library, self.label)
        self._record = Path()

    def exports(self, function: str) -> bool:
        """True if the library exports an extension."""
        return function in self._exported

    def arguments(self, exchange: Path) -> list[str]:
        """Return the command of the process that loads the library."""
        self._record = carriers.create_record(exchange)
        types = carriers.create_types(exchange, self._exported)
        return [sys.executable, "-m", CHILD, json.dumps(asdict(self._options)), str(types), str(self._record)]

    def _exchange_message(self, method: str, params: Any, deadline: float) -> Any:
        resets = method == "session.reset"
        try:
            return super()._exchange_message(method, params, min(deadline, RESET_DEADLINE) if resets else deadline)
        except TransportFault as stop:
            where = stop.fault.detail + carriers.last_call(self._record)
            if resets and stop.fault.kind == "hang":  # such as work that waits forever; it says nothing about a case
                return {"rejected": {"code": "TESS_ERR_TIMEOUT", "phase": "call", "message": where}}
            stop.fault = replace(stop.fault, detail=where)
            raise
