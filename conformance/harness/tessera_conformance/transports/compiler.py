"""The compiler that makes module images for an implementation that has none: `--compiler`.

A command with `{input}` and `{output}`, or an implementation of which nothing is asked but `abi.compile`. A request is
compiled once. Images of the reference's compiler say nothing about the implementation. With them a case that judges a
compiler or an image is inapplicable, unless the vendor names a compiler. So is one whose image the runtime does not
support.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from tessera_conformance.tensors import to_wire
from tessera_conformance.transports import ImplementationUnavailable, Inapplicable, Transport, TransportFault
from tessera_conformance.transports.rpc import signal_name

REFERENCE = "reference"
FEATURE = "module-compiler"
COMPILE, INSPECT, DEVICES = "abi.compile", "abi.inspect", "runtime.tessxDevices"
LOADING = ("runtime.tessModuleLoad", "runtime.tessKernelGet")
"""Refusals of images that the reference's compiler made: they say nothing of a runtime's own images."""
PATIENCE = 60.0
"""Seconds for the reference's compiler, independent of the deadline for calls of the implementation."""
PLACES = re.compile(r"\{(input|output|options)\}")
DIAGNOSTIC = re.compile(r"^(?:.*\b)?error\[(\w+)\]: *(.*)$", re.M)
LONGEST_MESSAGE = 2000


class Compiler(Protocol):
    """Answers `abi.compile` with an outcome; `label` is what `--compiler` said."""

    label: str

    def compile(self, params: Mapping[str, Any], deadline: float) -> Any:
        """The outcome of one request. Raises `TransportFault`."""
        ...

    def stop(self) -> None:
        """Release it."""
        ...


class ImplementationCompiler:
    """An implementation that is asked for images alone; looked up by `find` when first asked, and started once."""

    def __init__(self, label: str, find: Callable[[], Transport]) -> None:
        self.label = label
        self._find = find
        self._transport: Transport | None = None

    def compile(self, params: Mapping[str, Any], deadline: float) -> Any:
        """Its answer. Raises `TransportFault`, after which it is started again."""
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
        """End it, if it runs."""
        if self._transport is not None:
            self._transport.stop()
            self._transport = None


class CommandCompiler:
    """A program: `tessc {input} -o {output}`; `{options}` is a JSON file of what else a request says.

    Raises `ImplementationUnavailable`: the command is badly quoted, lacks a place or names no program.
    """

    def __init__(self, command: str) -> None:
        self.label = command
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise ImplementationUnavailable(f"--compiler={command}", f"{error}", "balance the quotes") from None
        places = set(PLACES.findall(command))
        if not {"input", "output"} <= places:
            raise ImplementationUnavailable(
                f"--compiler={command}",
                "it does not contain {input} and {output}",
                "write it as --compiler='tessc {input} -o {output}'",
            )
        if shutil.which(self._words[0]) is None:
            raise ImplementationUnavailable(
                f"--compiler={command}", f"no program {self._words[0]!r} is on PATH", "name the program that compiles"
            )
        self._takes_options = "options" in places

    def compile(self, params: Mapping[str, Any], deadline: float) -> Any:
        """The image that the program wrote, or why it refused.

        Raises `Inapplicable`: the request says more than the source, and the command has no place for it; or
        `TransportFault`: it crashed, hung or wrote nothing.
        """
        options = {name: value for name, value in params.items() if name != "source"}
        if options and not self._takes_options:
            raise Inapplicable(f"compiles with {', '.join(options)}, and --compiler has no place {{options}} for it")
        suffix = ".tsr" if params.get("at", "dsl") == "dsl" else ".mlir"
        with tempfile.TemporaryDirectory(prefix="tessera-compile-") as folder:
            files = {name: Path(folder) / file for name, file in self._names(suffix).items()}
            files["input"].write_text(params["source"], encoding="utf-8")
            files["options"].write_text(json.dumps(to_wire(options)), encoding="utf-8")
            words = [PLACES.sub(lambda found: str(files[found[1]]), word) for word in self._words]
            done = self._run(words, deadline)
            if done.returncode != 0:
                return _refused(done.stderr or done.stdout)
            return {"returned": {"image": self._image(files["output"], done.stderr).hex()}}

    def stop(self) -> None:
        """Nothing runs between requests."""

    @staticmethod
    def _names(suffix: str) -> Mapping[str, str]:
        return {"input": f"program{suffix}", "output": "image", "options": "options.json"}

    def _run(self, words: list[str], deadline: float) -> subprocess.CompletedProcess[str]:
        program = f"the compiler {self._words[0]}"
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=deadline,
                check=False,
                encoding="utf-8",
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            raise TransportFault("hang", f"{program}: no image within {deadline:g} s") from None
        except OSError as error:
            raise TransportFault("crash", f"{program}: {error.strerror}") from None
        if done.returncode < 0:
            raise TransportFault("crash", f"{program} ended with signal {signal_name(-done.returncode)}", done.stderr)
        return done

    def _image(self, path: Path, stderr: str) -> bytes:
        image = path.read_bytes() if path.is_file() else b""
        if not image:
            raise TransportFault("protocol_error", f"the compiler {self._words[0]} wrote no {{output}}", stderr)
        return image


def _refused(said: str) -> Any:
    """A refusal; its category is that of a diagnostic `error[shapes]: ...`, where there is one."""
    match = DIAGNOSTIC.search(said)
    if match is None:
        body = {"code": "TESS_ERR_INVALID_VALUE", "phase": "call", "message": said.strip()[-LONGEST_MESSAGE:]}
    else:
        body = {"code": match[1], "phase": "verify", "message": match[2]}
    return {"rejected": body}


class CompilingTransport:
    """An implementation whose images another compiler makes; everything else passes."""

    def __init__(self, transport: Transport, compiler: Compiler) -> None:
        self.label = transport.label
        self.compiler = compiler.label
        self._transport, self._compiler = transport, compiler
        self._foreign = compiler.label == REFERENCE
        self._outcomes: dict[str, Any] = {}
        self._targets: list[str] | None = None

    def start(self, deadline: float) -> Any:
        """Start the implementation, which then claims a compiler; the compiler starts when first asked."""
        hello = self._transport.start(deadline)
        if not isinstance(hello, dict) or not isinstance(hello.get("capabilities", {}), dict):
            return hello
        return hello | {"capabilities": {**hello.get("capabilities", {}), FEATURE: "enforced"}}

    def call(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        """Compile, or pass the call on.

        Raises `TransportFault`: of the implementation or of the compiler; or `Inapplicable`: the answer would say
        nothing of the implementation.
        """
        if method == INSPECT and self._foreign:
            raise Inapplicable(f"judges an image, and images are made by the reference's compiler: {self._remedy()}")
        if method != COMPILE:
            answer = self._transport.call(method, params, deadline)
            if self._foreign and method in LOADING and _refuses_as_unsupported(answer):
                raise Inapplicable(
                    f"{method} does not support this image of the reference's compiler: {self._remedy()}"
                )
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
        """The outcome of a request, kept for the next of the same."""
        if self._foreign and params.get("targets") is None and (targets := self._device_targets(deadline)):
            params["targets"] = targets
        key = json.dumps(params, sort_keys=True)
        if key not in self._outcomes:
            patience = max(deadline, PATIENCE) if self._foreign else deadline
            self._outcomes[key] = self._compiler.compile(params, patience)
        return self._outcomes[key]

    def _device_targets(self, deadline: float) -> list[str]:
        """The targets of the implementation's devices, each once: those that an image is made for without `targets`."""
        if self._targets is None:
            outcome = self._transport.call(DEVICES, {}, deadline)
            devices = outcome.get("returned", {}).get("devices", [])
            self._targets = list(dict.fromkeys(device["target"] for device in devices))
        return self._targets

    def _remedy(self) -> str:
        return f"name the compiler of {self.label} with --compiler to judge it"


def _refuses_as_unsupported(outcome: Any) -> bool:
    rejected = outcome.get("rejected") if isinstance(outcome, dict) else None
    return isinstance(rejected, dict) and rejected.get("code") == "TESS_ERR_UNSUPPORTED"


def _said(outcome: Any) -> str:
    if "rejected" in outcome:
        return f"{outcome['rejected']['code']}: {outcome['rejected']['message']}"
    return f"it does not support {outcome['unsupported']['feature']}"
