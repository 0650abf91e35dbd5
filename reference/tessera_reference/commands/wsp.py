"""`tessera-reference wsp`: compile a program, describe a package, run one (PTO-WSP v10, sections 1.1 and 7.2)."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..ir.diagnostics import read_json
from ..wsp.deadlock import drawing, explanation
from ..wsp.errors import WspFailure
from ..wsp.native import NoCompiler, build, c_program, compiler, prepared
from ..wsp.package import MOST_STEPS, Inputs, Package, decimal, load
from .program import BadInput, read_bytes, write_file
from .tools import answer

DEADLOCK = 1


def register_wsp(subparsers: Any) -> None:
    """Add `wsp` with its subcommands."""
    parser = subparsers.add_parser("wsp", help="compile, inspect and run packages of channels, processes and tasks")
    commands = parser.add_subparsers(dest="wsp_command", required=True, metavar="COMMAND")
    compiling = _command(commands, "compile", compile_file, "compile a program in JSON to a package", "a program")
    compiling.add_argument("--target", default="cpu_sim", help="the target (default: cpu_sim)")
    compiling.add_argument("--output", "-o", metavar="PACKAGE", help="where to write it (default: standard output)")
    _command(commands, "inspect", inspect, "say what a package holds", "a package")
    summary = "run a package, and print its result as JSON; exit code 1 for an error or a deadlock of the run"
    running = _command(commands, "run", run, summary, "a package")
    summary = "say what a run came to, and why and what would help where it is a deadlock; exit code as of run"
    explaining = _command(
        commands, "explain", explain, summary, "a result that run printed, or a package, which is run"
    )
    explaining.add_argument("--svg", metavar="FILE", help="draw who waits for whom")
    for command in (running, explaining):
        command.add_argument("--symbol", action="append", default=[], metavar="NAME=VALUE", help="a symbol of this run")
        command.add_argument("--tensor", action="append", default=[], metavar="NAME=HEX", help="the bytes of a tensor")
        knobs = "a knob: task_window, a pool, channel.NAME.capacity or scope.NAME"
        command.add_argument("--resource", action="append", default=[], metavar="NAME=SIZE", help=knobs)
        bound = f"end the run after N steps of statements (default: {MOST_STEPS})"
        command.add_argument("--max-steps", type=int, default=MOST_STEPS, metavar="N", help=bound)
        engine = "what runs a package for cpu_sim (default: native where there is a C compiler)"
        command.add_argument("--engine", choices=("native", "executor"), help=engine)
    summary = "write a C program from a package for cpu_sim, and have the system's C compiler build it"
    building = _command(commands, "build", build_native, summary, "a package")
    building.add_argument("--output", "-o", metavar="PROGRAM", required=True, help="where to write the program")
    building.add_argument("--c", metavar="FILE", help="where to keep its C text")
    summary = "answer the WSP methods of the conformance protocol, with native programs for packages for cpu_sim"
    commands.add_parser("serve", help=summary, description=summary).set_defaults(run=serve_native, source_text="")


def _command(
    commands: Any, name: str, action: Callable[[argparse.Namespace], int], summary: str, file: str
) -> argparse.ArgumentParser:
    """Add a command on a file; what is wrong with the file is bad input."""

    def run(options: argparse.Namespace) -> int:
        try:
            return action(options)
        except WspFailure as problem:
            raise BadInput(f"{options.file}: {problem}") from None

    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=summary)
    parser.add_argument("file", metavar="FILE", help=f"{file}; - is standard input")
    parser.set_defaults(run=run, source_text="")
    return parser


def compile_file(options: argparse.Namespace) -> int:
    """Write the package of a program; report to stderr what its target ignores."""
    from ..wsp.builder import compile_program  # running a package needs no compiler
    from ..wsp.package import package_bytes
    from ..wsp.targets import target

    try:
        wanted = target(options.target)
    except WspFailure as problem:
        raise BadInput(f"--{problem}") from None
    try:
        program = read_json(read_bytes(options))
    except ValueError as error:
        raise BadInput(f"{options.file}: is no JSON: {error}") from None
    package, diagnostics = compile_program(program, wanted)
    for diagnostic in diagnostics:
        print(f"warning: {diagnostic}", file=sys.stderr)
    data = package_bytes(package)
    if options.output is None:
        sys.stdout.write(data.decode())
    else:
        write_file(options.output, data)
    return 0


def inspect(options: argparse.Namespace) -> int:
    """Print the description of a package."""
    print(*_described(load(read_bytes(options))), sep="\n")
    return 0


def run(options: argparse.Namespace) -> int:
    """Run a package and print its result."""
    result = _result(load(read_bytes(options)), options)
    print(json.dumps(result, indent=2))
    return _exit_code(result)


def build_native(options: argparse.Namespace) -> int:
    """Write the program and, if requested, its C text."""
    package = load(read_bytes(options))
    build(package, Path(options.output))
    if options.c is not None:
        write_file(options.c, c_program(package))
    return 0


def serve_native(options: argparse.Namespace) -> int:
    """Answer until standard input ends."""
    from ..adapter.wsp import NativeWsp  # only this command needs the harness

    if compiler() is None:
        raise BadInput(str(NoCompiler()))
    return answer(NativeWsp())


def explain(options: argparse.Namespace) -> int:
    """Print the result of a run for people, and draw a deadlock."""
    data = read_bytes(options)
    try:
        stated = read_json(data)
    except ValueError:
        stated = None
    is_report = isinstance(stated, dict) and "outcome" in stated
    result = stated if is_report else _result(load(data), options)
    try:
        lines = list(explanation(result))
        picture = drawing(result["deadlock"]) if options.svg is not None and "deadlock" in result else None
    except (KeyError, TypeError, AttributeError, ValueError):
        raise BadInput(f"{options.file}: is no result of a run (schemas/wsp_result.schema.json)") from None
    print(*lines, sep="\n")
    if options.svg is not None:
        if picture is None:
            raise BadInput(f"--svg {options.svg}: the run is no deadlock, and there is nothing to draw")
        write_file(options.svg, picture)
    return _exit_code(result)


def _result(package: Package, options: argparse.Namespace) -> Mapping[str, Any]:
    try:
        inputs: Inputs = {
            "symbols": {name: decimal(f"symbol {name}", value) for name, value in _pairs(options.symbol)},
            "tensors": {name: _bytes(name, value) for name, value in _pairs(options.tensor)},
            "resources": {name: decimal(f"resource {name}", value) for name, value in _pairs(options.resource)},
            "max_steps": options.max_steps,
        }
        native = options.engine == "native" or (options.engine is None and compiler() is not None)
        return prepared(package, native, **inputs).finish().result()
    except WspFailure as problem:
        raise BadInput(str(problem)) from None


def _exit_code(result: Mapping[str, Any]) -> int:
    return 0 if result["outcome"] == "completed" else DEADLOCK


def _described(package: Package) -> Iterator[str]:
    schedule = package.schedule
    yield f"package {package.name} for {package.target}, phase {package.phase}"
    window = schedule.task_window
    yield f"dispatch {schedule.policy.id}, window of {window.size} {window.unit}, mode {window.mode}"
    yield "resources " + ", ".join(f"{name} {size}" for name, size in vars(schedule.resources).items())
    for directive in schedule.directives:
        yield f"directive {directive.name} = {directive.value}: {directive.state}"
    for kernel in package.kernels:
        parameters = ", ".join(f"{name}: {kind}" for name, kind in kernel.parameters.items())
        cycles = f"{kernel.cycles.fixed} + {kernel.cycles.per_element} * elements cycles"
        work = f"{len(kernel.payload.instructions)} instructions, {cycles}"
        yield f"kernel {kernel.name}({parameters}) on {kernel.executor}: {work}"
    for channel in package.csp.channels:
        yield f"channel {channel.name}: capacity {channel.capacity}, latency {channel.latency}"
    for process in package.csp.processes:
        yield f"process {process.name}: {len(process.body)} statements"
    for symbol in package.symbols:
        yield f"symbol {symbol.name}: {symbol.width} bits, {symbol.default} by default"
    for tensor in package.tensors:
        yield f"tensor {tensor.name}: {tensor.count} of {tensor.dtype}"
    if package.slots:
        yield f"slots {', '.join(slot.name for slot in package.slots)}"


def _pairs(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    for option in texts:
        name, sign, value = option.partition("=")
        if not sign:
            raise BadInput(f"{option}: expected NAME=VALUE")
        yield name, value


def _bytes(name: str, value: str) -> bytes:
    try:
        return bytes.fromhex(value)
    except ValueError:
        raise BadInput(f"{name}={value:.40}: expected two hexadecimal digits a byte") from None
