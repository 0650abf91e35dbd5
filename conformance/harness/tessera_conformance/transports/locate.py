"""The transport, adapter or compiler that `--impl` and `--compiler` name."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, TypeAlias, cast

from tessera_conformance.adapter import Adapter, MalformedAnswer, NotSupported, invoke, stop_of
from tessera_conformance.interface import interface
from tessera_conformance.protocol import write_outcome
from tessera_conformance.tensors import MalformedTensor, from_wire, to_wire
from tessera_conformance.terminal import meant
from tessera_conformance.transports import ImplementationUnavailable, Inapplicable, Transport, TransportFault
from tessera_conformance.transports.cabi.transport import CabiTransport
from tessera_conformance.transports.hostio import HostIoTransport
from tessera_conformance.transports.rpc import RpcTransport, ending

# The compiler that makes module images for an implementation that has none: `--compiler`.
#
# A command with `{input}` and `{output}`, or an implementation that is called for `abi.compile` alone. A request is
# compiled once. Images of the reference's compiler say nothing about the implementation. With them a case that judges a
# compiler or an image is inapplicable, unless the vendor names a compiler. So is one whose image the runtime does not
# support.


REFERENCE_COMPILER = "reference"
FEATURE = "module-compiler"
COMPILE, INSPECT, DEVICES = "abi.compile", "abi.inspect", "runtime.tessxDevices"
LOADING = ("runtime.tessModuleLoad", "runtime.tessKernelGet")
"""Refusals of images that the reference's compiler made: they say nothing about a runtime's own images."""
PATIENCE = 60.0
"""Seconds for the reference's compiler, independent of the deadline for calls of the implementation."""
PLACES = re.compile(r"\{(input|output|options)\}")
DIAGNOSTIC = re.compile(r"^(?:.*\b)?error\[(\w+)\]: *(.*)$", re.M)
LONGEST_MESSAGE = 2000


class ImplementationCompiler:
    """An implementation that only compiles images; the first request looks it up by `find` and starts it."""

    def __init__(self, label: str, find: Callable[[], Transport]) -> None:
        self.label = label
        self._find = find
        self._transport: Transport | None = None

    def compile(self, params: Mapping[str, Any], deadline: float) -> Any:
        """Return its answer. Raises `TransportFault`, after which the next request starts it again."""
        try:
            if self._transport is None:
                transport = self._find()
                transport.start(max(deadline, 60.0))
                self._transport = transport
            return self._transport.call(COMPILE, params, deadline)
        except TransportFault as stop:
            self.stop()
            raise TransportFault(
                stop.fault.kind, f"the compiler {self.label}: {stop.fault.detail}", stop.fault.stderr
            ) from None

    def stop(self) -> None:
        """Stop it, if it runs."""
        if self._transport is not None:
            self._transport.stop()
            self._transport = None


class CommandCompiler:
    """A program: `tessc {input} -o {output}`; `{options}` is a JSON file with the other parameters of a request.

    Raises `ImplementationUnavailable`: the command is badly quoted, lacks a place or names no program.
    """

    def __init__(self, command: str) -> None:
        self.label, option = command, f"--compiler={command}"
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise ImplementationUnavailable(option, f"{error}", "balance the quotes") from None
        places = set(PLACES.findall(command))
        if not {"input", "output"} <= places:
            remedy = "write it as --compiler='tessc {input} -o {output}'"
            raise ImplementationUnavailable(option, "it does not contain {input} and {output}", remedy)
        if shutil.which(self._words[0]) is None:
            problem = f"no program {self._words[0]!r} is on PATH"
            raise ImplementationUnavailable(option, problem, "name the program that compiles")
        self._takes_options = "options" in places

    def compile(self, params: Mapping[str, Any], deadline: float) -> Any:
        """Return the image that the program wrote, or its refusal.

        Raises `Inapplicable`: the request has parameters beside the source, and the command has no place for them; or
        `TransportFault`: it crashed, hung or wrote nothing.
        """
        options = {name: value for name, value in params.items() if name != "source"}
        if options and not self._takes_options:
            raise Inapplicable(f"compiles with {', '.join(options)}, and --compiler has no place {{options}} for it")
        source = "program.tsr" if params.get("at", "dsl") == "dsl" else "program.mlir"
        names = {"input": source, "output": "image", "options": "options.json"}
        with tempfile.TemporaryDirectory(prefix="tessera-compile-") as folder:
            files = {name: Path(folder) / file for name, file in names.items()}
            files["input"].write_text(params["source"], encoding="utf-8")
            files["options"].write_text(json.dumps(to_wire(options)), encoding="utf-8")
            done = self._run([PLACES.sub(lambda found: str(files[found[1]]), word) for word in self._words], deadline)
            if done.returncode != 0:
                return _refused(done.stderr or done.stdout)
            image = files["output"].read_bytes() if files["output"].is_file() else b""
        if not image:
            raise TransportFault("protocol_error", f"the compiler {self._words[0]} wrote no {{output}}", done.stderr)
        return {"returned": {"image": image.hex()}}

    def stop(self) -> None:
        """Do nothing: no process runs between requests."""

    def _run(self, words: list[str], deadline: float) -> subprocess.CompletedProcess[str]:
        program = f"the compiler {self._words[0]}"
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=deadline,
                encoding="utf-8",
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            raise TransportFault("hang", f"{program}: no image within {deadline:g} s") from None
        except OSError as error:
            raise TransportFault("crash", f"{program}: {error.strerror}") from None
        if done.returncode < 0:
            raise TransportFault("crash", f"{program} ended with {ending(done.returncode)}", done.stderr)
        return done


Compiler: TypeAlias = ImplementationCompiler | CommandCompiler
"""Answers `abi.compile` with an outcome; `label` is the text of `--compiler`."""


def _refused(output: str) -> Any:
    """Return a refusal; its category is that of a diagnostic `error[shapes]: ...` in the output, if there is one."""
    match = DIAGNOSTIC.search(output)
    if match is None:
        body = {"code": "TESS_ERR_INVALID_VALUE", "phase": "call", "message": output.strip()[-LONGEST_MESSAGE:]}
    else:
        body = {"code": match[1], "phase": "verify", "message": match[2]}
    return {"rejected": body}


class CompilingTransport:
    """An implementation with another compiler for its images; it passes every other call on."""

    def __init__(self, transport: Transport, compiler: Compiler) -> None:
        self.label = transport.label
        self.compiler = compiler.label
        self._transport, self._compiler = transport, compiler
        self._foreign = compiler.label == REFERENCE_COMPILER
        self._outcomes: dict[str, Any] = {}
        self._targets: list[str] | None = None

    def start(self, deadline: float) -> Any:
        """Start the implementation, and claim a compiler for it; the first request starts the compiler."""
        hello = self._transport.start(deadline)
        if not isinstance(hello, dict) or not isinstance(hello.get("capabilities", {}), dict):
            return hello
        return hello | {"capabilities": {**hello.get("capabilities", {}), FEATURE: "enforced"}}

    def call(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        """Compile, or pass the call on.

        Raises `TransportFault`: of the implementation or of the compiler; or `Inapplicable`: the answer would say
        nothing about the implementation.
        """
        if method == INSPECT and self._foreign:
            raise Inapplicable(f"judges an image, and images are made by the reference's compiler: {self._remedy()}")
        if method != COMPILE:
            answer = self._transport.call(method, params, deadline)
            match answer:
                case {"rejected": {"code": "TESS_ERR_UNSUPPORTED"}} if self._foreign and method in LOADING:
                    which = "this image of the reference's compiler"
                    raise Inapplicable(f"{method} does not support {which}: {self._remedy()}")
            return answer
        outcome = self._compiled(dict(params), deadline)
        if self._foreign and "returned" not in outcome:
            raise Inapplicable(f"the reference's compiler makes no image: {_said(outcome)}: {self._remedy()}")
        return outcome

    def stop(self) -> None:
        """Stop both."""
        self._transport.stop()
        self._compiler.stop()

    def _compiled(self, params: dict[str, Any], deadline: float) -> Any:
        """Return the outcome of a request, and keep it for equal requests."""
        if self._foreign and params.get("targets") is None and (targets := self._device_targets(deadline)):
            params["targets"] = targets
        key = json.dumps(params, sort_keys=True)
        if key not in self._outcomes:
            patience = max(deadline, PATIENCE) if self._foreign else deadline
            self._outcomes[key] = self._compiler.compile(params, patience)
        return self._outcomes[key]

    def _device_targets(self, deadline: float) -> list[str]:
        """Return the targets of the implementation's devices, each once: a request without `targets` gets them."""
        if self._targets is None:
            outcome = self._transport.call(DEVICES, {}, deadline)
            devices = outcome.get("returned", {}).get("devices", [])
            self._targets = list(dict.fromkeys(device["target"] for device in devices))
        return self._targets

    def _remedy(self) -> str:
        return f"name the compiler of {self.label} with --compiler to judge it"


def _said(outcome: Any) -> str:
    if "rejected" in outcome:
        return f"{outcome['rejected']['code']}: {outcome['rejected']['message']}"
    return f"it does not support {outcome['unsupported']['feature']}"


# The implementation as a Python object in this process.
#
# Fast and easy to debug. A Python-level hang is interrupted at the deadline; a native crash or a native busy loop
# takes the run with it, so implementations with native code belong behind the rpc transport.


HARNESS = Path(__file__).parents[1]


class DeadlinePassed(BaseException):
    """Raised inside a call that exceeds its deadline; not an Exception, so that adapters do not swallow it."""


class DirectTransport:
    """Calls an adapter object made by `factory`."""

    def __init__(self, factory: Callable[[], Adapter], label: str) -> None:
        self.label = label
        self._factory = factory
        self._adapter: Adapter | None = None

    def start(self, deadline: float) -> Any:
        """Make a new adapter and return its Hello."""
        self._adapter = None
        take_alarm()
        return _answer_of(self._started, deadline)

    def _started(self) -> Any:
        self._adapter = self._factory()
        return self._adapter.hello()

    def call(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        """Call one method of the adapter."""
        if self._adapter is None:
            raise TransportFault("crash", "the implementation is not started")
        adapter = self._adapter
        if method == "session.reset":
            take_alarm()
        return _answer_of(lambda: write_outcome(invoke(adapter, method, from_wire(dict(params)))), deadline)

    def stop(self) -> None:
        """Drop the adapter."""
        self._adapter = None


def _answer_of(ask: Callable[[], Any], deadline: float) -> Any:
    """Return the result of a call, interrupted at its deadline. Raises `TransportFault` for any exception.

    A plain function: two context managers for each of 200,000 calls would cost half a second of a run.
    """
    try:
        return limited(ask, deadline)
    except DeadlinePassed:
        raise TransportFault("hang", f"no answer within {deadline:g} s") from None
    except SystemExit as error:
        raise TransportFault("crash", f"the implementation called exit({error.code})") from None
    except KeyboardInterrupt:
        raise
    except MalformedAnswer as error:
        raise TransportFault("protocol_error", str(error)) from None
    except BaseException as error:
        detail = traceback.format_exception_only(error)[-1].strip().removeprefix(f"{MalformedTensor.__module__}.")
        raise TransportFault("crash", detail, _trace_of_others(error)) from None


def _trace_of_others(error: BaseException) -> str:
    """Return the traceback of an error, without the frames of the harness if there are others."""
    whole = traceback.TracebackException.from_exception(error)
    others = [
        frame for frame in whole.stack if not frame.filename.startswith(str(HARNESS)) and frame.filename[0] != "<"
    ]
    if others:
        whole.stack = traceback.StackSummary.from_list(others)
    return "".join(whole.format())


def limited(ask: Callable[[], Any], seconds: float) -> Any:
    """Call, and interrupt Python code after `seconds`, if this process can do that."""
    if not _can_interrupt():
        return ask()
    signal.setitimer(signal.ITIMER_REAL, seconds)
    limit = time.monotonic() + seconds
    try:
        answer = ask()
        if time.monotonic() > limit:
            raise DeadlinePassed  # the adapter swallowed the interrupt, or disabled it
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return answer


def _can_interrupt() -> bool:
    """True in the main thread of a POSIX process."""
    return threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")


def take_alarm() -> None:
    """Set the signal handler at the start and before every case, since a case may have set another.

    It stays set, since without a timer nothing calls it. Setting it for each of 200,000 calls took a fortieth of a run.
    """
    if _can_interrupt():
        signal.signal(signal.SIGALRM, _interrupt)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise DeadlinePassed


# An implementation behind a transport as an adapter, so that `serve`, and with it the script of a case, can call it.


DEADLINE = 24 * 3600.0
"""Seconds; the deadline of the caller decides."""
ENDPOINT_DEADLINE = 30.0
"""Seconds for an endpoint, which may not listen yet: until then the transport tries to connect."""


class PassingAdapter:
    """Passes every method on to a transport."""

    def __init__(self, transport: Transport, deadline: float = DEADLINE) -> None:
        self._transport, self._deadline = transport, deadline

    def hello(self) -> Mapping[str, Any]:
        """Start the implementation and return its Hello."""
        hello: Mapping[str, Any] = self._transport.start(self._deadline)
        return hello

    def close(self) -> None:
        """Stop the implementation."""
        self._transport.stop()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the method that `invoke` looks up: `runtime_tessInit`, `host_io_describe`."""
        area = next((area_name for area_name in interface().areas if name.startswith(f"{area_name}_")), None)
        if area is None:
            raise AttributeError(name)
        method = f"{area}.{name[len(area) + 1 :]}"
        return lambda **params: self._passed(method, params)

    def _passed(self, method: str, params: Mapping[str, Any]) -> Any:
        """Return the result of the implementation.

        Raises `Refusal` or `NotSupported`: as it answered, or `NotSupported` for an inapplicable answer;
        `MalformedAnswer`: it broke the protocol; `TransportFault`: it crashed.
        """
        try:
            outcome = from_wire(self._transport.call(method, params, self._deadline))
        except Inapplicable as reason:
            raise NotSupported(f"{method}: {reason}") from None
        except TransportFault as stop:
            if stop.fault.kind == "protocol_error":
                raise MalformedAnswer(stop.fault.detail) from None
            raise
        stopped = stop_of(outcome)
        if stopped is not None:
            raise stopped
        return outcome["returned"]


# The transports of `--impl` and `--compiler`: `reference` or one of `FORMS`.


COMPILES = "tessxCompile"
"""The function of a library that compiles images itself."""
TABLES = "ops:"
"""The form of a table of operations."""
REFERENCE = "py:tessera_reference.adapter:make"
IN_PROCESS = {"py": "factory", "ops": "table"}
"""The forms of adapters in this process, with what they name in a module."""
TRANSPORTS: Mapping[str, Callable[[str], Transport]] = {
    "rpc": RpcTransport,
    "hostio": HostIoTransport,
    "cabi": CabiTransport,
}
"""The transports of the other forms."""
FORMS = (
    "reference, py:module:factory, ops:module:table, rpc:command, cabi:/path/lib.so, hostio:unix:PATH or "
    "hostio:tcp:HOST:PORT"
)
COMPILERS = (
    "what makes the module images: a command such as 'tessc {input} -o {output}', reference, py:module:factory or "
    "rpc:command (default: IMPL itself; for a C library without one, reference)"
)


def locate(implementation: str, compiler: str | None = None) -> Transport:
    """Return the transport for an `--impl` value; `--compiler` may name another compiler for its images.

    A C library without a compiler gets the images of the reference's.

    Raises `ImplementationUnavailable`: the form is unknown, or the module, factory, program or library cannot be found.
    """
    transport = _located(implementation)
    if compiler is None and isinstance(transport, CabiTransport) and not transport.exports(COMPILES):
        compiler = "reference"
    return transport if compiler is None else CompilingTransport(transport, _compiler(compiler))


def _compiler(text: str) -> Compiler:
    """Return the compiler of `--compiler`; the reference is located on demand. Raises `ImplementationUnavailable`."""
    if "{" in text or text.partition(":")[0] not in ("reference", "py", "rpc"):
        return CommandCompiler(text)
    if text == "reference":
        return ImplementationCompiler(text, lambda: _located(text))
    transport = _located(text)
    return ImplementationCompiler(text, lambda: transport)


def _located(implementation: str) -> Transport:
    form, place = _form_and_place(implementation)
    if form in IN_PROCESS:
        return DirectTransport(_factory(form, place, implementation), implementation)
    if form in TRANSPORTS:
        return TRANSPORTS[form](place)
    hint = meant(implementation, ["reference"])
    raise ImplementationUnavailable(implementation, f"unknown form{hint}", f"use {FORMS}")


def _form_and_place(implementation: str) -> tuple[str, str]:
    form, _, place = (REFERENCE if implementation == "reference" else implementation).partition(":")
    return form, place


def load_adapter(implementation: str, compiler: str | None = None) -> Adapter:
    """Return an adapter in this process, for the line protocol: a Python one, an endpoint's or a library's.

    Raises `ImplementationUnavailable`: it is none of them, or cannot be found.
    """
    form, place = _form_and_place(implementation)
    if form == "cabi" or compiler is not None:
        return PassingAdapter(locate(implementation, compiler))
    if form == "hostio":
        return PassingAdapter(HostIoTransport(place), ENDPOINT_DEADLINE)
    if form in IN_PROCESS:
        return _factory(form, place, implementation)()
    remedy = "use reference, py:module:factory, ops:module:table or cabi:/path/lib.so"
    raise ImplementationUnavailable(implementation, "not a Python adapter", remedy)


def via_of(implementation: str, via: str) -> str:
    """Return the effective `--via` of a run: a table of operations has no programs."""
    return "operations" if implementation.startswith(TABLES) else via


def _factory(form: str, place: str, implementation: str) -> Callable[[], Adapter]:
    """Return the function that makes the adapter of `py:module:factory` or `ops:module:table`."""
    module_name, _, name = place.partition(":")
    if not module_name or not name:
        noun = IN_PROCESS[form]
        raise ImplementationUnavailable(implementation, f"module or {noun} is missing", f"use {form}:module:{noun}")
    module = _module(module_name, implementation)
    if form == "ops":
        return _table(module, name, implementation)
    factory = getattr(module, name, None)
    if not callable(factory):
        problem = f"module {module_name} has no callable {name!r}"
        remedy = "name a function or class that returns the adapter when called without arguments"
        raise ImplementationUnavailable(implementation, problem, remedy)
    return cast(Callable[[], Adapter], factory)


def _table(module: ModuleType, name: str, implementation: str) -> Callable[[], Adapter]:
    from tessera_conformance.operations.table_adapter import BadTable, adapter_of

    try:
        adapter = adapter_of(module, name)
    except BadTable as problem:
        remedy = "`tessera-conformance new-adapter --kind=operations` writes a table"
        raise ImplementationUnavailable(implementation, str(problem), remedy) from None
    return lambda: adapter


def _module(module_name: str, implementation: str) -> ModuleType:
    """Import a module of the vendor, also from the current folder."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(module_name)
    except Exception as error:
        remedy = f"run `python -c 'import {module_name}'` in this directory until it works"
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            hint = meant(module_name, (path.stem for path in Path().glob("*.py"))).removeprefix("; ")
            problem = f"there is no module {error.name}, here or on PYTHONPATH"
            raise ImplementationUnavailable(implementation, problem, hint or remedy) from None
        place = f"{_place_of(error)}{type(error).__name__}: {error}"
        raise ImplementationUnavailable(implementation, f"importing {module_name} failed: {place}", remedy) from None


def _place_of(error: Exception) -> str:
    """Return the file and line in the vendor's own code that raised an error, `adapter.py:3: `, or ""."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    return f"{own[-1].filename}:{own[-1].lineno}: " if len(own) > 1 else ""
