"""The functions of the runtime as the protocol has them, and how they become methods of the adapter.

Most are made from their line in the interface: the arguments are read, the function of `Runtime` is called with them in
their order, and its outputs are written as the types of the result say. Those that need more are written out, here and
in `extensions.py`. A status other than TESS_OK becomes a rejection with its text. Plain values pass unread: the runtime
itself checks what it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from inspect import Parameter
from operator import methodcaller
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.interface import Method, interface
from tessera_conformance.interface.types import ListOf, Named, Type

from ..abi.status import Status
from ..mesh.axes import MeshAxes
from ..runtime import Runtime
from ..runtime.launches import LaunchConfig
from .requests import checked, is_scalar, reader_of, reading
from .session_state import SessionState
from .statuses import statuses

__all__ = ["RuntimeMethods", "make_methods"]

AREA = interface().areas["runtime"]


class RuntimeMethods(SessionState):
    """The C functions (runtime spec 4)."""

    def output(self, answer: Any) -> Any:
        """What a function gave: its outputs, None where it has none. Raises `Refusal`."""
        pair = isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], Status)
        status, output = answer if pair else (answer, None)
        if not isinstance(status, Status):
            return answer
        if status is not Status.TESS_OK:
            raise Refusal(status.name, "call", self.runtime.last_error)
        return output

    def done(self, status: Status) -> dict[str, Any]:
        """The answer of a function without outputs. Raises `Refusal`."""
        self.output(status)
        return {}

    @checked
    def runtime_tessMeshCreate(  # noqa: N802, the names of the protocol, as all below
        self,
        *,
        context: Any,
        deviceIds: Any,  # noqa: N803
        axes: Mapping[str, int],
        nDevices: Any = None,  # noqa: N803
        null: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        """A mesh of some axes, of as many devices as there are ids."""
        with statuses():
            arranged = MeshAxes(**axes)
        counted = len(deviceIds) if isinstance(deviceIds, list | tuple) else 1
        count = counted if nDevices is None else nDevices
        return {"mesh": self.output(self.runtime.tessMeshCreate(context, deviceIds, count, arranged, null=null))}

    @checked
    def runtime_tessModuleLoad(  # noqa: N802
        self, *, context: Any, image: bytes | int | None, size: Any = None, null: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """A module, of the whole image."""
        count = _length(image) if size is None else size
        return {"module": self.output(self.runtime.tessModuleLoad(context, image, count, null=null))}

    @checked
    def runtime_tessLaunch(  # noqa: N802
        self,
        *,
        kernel: Any,
        mesh: Any,
        cfg: LaunchConfig,
        argBuffer: bytes | int | None,  # noqa: N803
        stream: Any,
        argSize: Any = None,  # noqa: N803
    ) -> dict[str, Any]:
        """Queue a launch, with the whole buffer."""
        size = _length(argBuffer) if argSize is None else argSize
        return self.done(self.runtime.tessLaunch(kernel, mesh, cfg, argBuffer, size, stream))

    @checked
    def runtime_tessSetNumericsPolicy(self, *, context: int, policy: Any) -> dict[str, Any]:  # noqa: N802
        """Govern what is submitted from now on."""
        return self.done(self.runtime.tessSetNumericsPolicy(context, policy))

    @checked
    def runtime_tessGetNumericsPolicy(  # noqa: N802
        self, *, context: int, null: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """The policy last set."""
        return {"policy": asdict(self.output(self.runtime.tessGetNumericsPolicy(context, null=null)))}


def _length(given: bytes | int | None) -> int:
    """The size where none is given: that of the data."""
    return len(given) if isinstance(given, bytes) else 0


def make_methods(cls: type[RuntimeMethods]) -> None:
    """Give a class a method for every function of the runtime that it does not write out itself."""
    for declared in AREA.methods.values():
        name = f"runtime_{declared.name}"
        if not hasattr(cls, name) and hasattr(Runtime, declared.name):
            setattr(cls, name, _made(declared, name))


def _made(declared: Method, name: str) -> Any:
    nullable = bool(declared.c and declared.outputs)
    names = [each.name for each in declared.parameters]
    result = _results(declared)

    def call(self: RuntimeMethods, *, null: tuple[str, ...] = (), **given: Any) -> dict[str, Any]:
        arguments = map(given.get, names)
        function = getattr(self.runtime, declared.name)
        return result(self.output(function(*arguments, null=null) if nullable else function(*arguments)))

    stated = [*declared.parameters, *(AREA.also if nullable else ())]
    readers = {each.name: reader_of(each.type) for each in stated if not is_scalar(each.type)}
    taken = [
        Parameter(each.name, Parameter.KEYWORD_ONLY, default=_default(each.name) if each.optional else Parameter.empty)
        for each in stated
    ]
    made = reading(call, declared.full_name, taken, readers)
    made.__name__, made.__doc__ = name, declared.doc or f"Call {declared.name}."
    return made


def _default(name: str) -> tuple[str, ...] | None:
    return () if name == "null" else None


def _results(declared: Method) -> Callable[[Any], dict[str, Any]]:
    """How the outputs of a function are told by name: one value, a tuple of them, or a dataclass with their names."""
    writers = [(each.name, _writer(each.type)) for each in declared.outputs]

    def result(output: Any) -> dict[str, Any]:
        if len(writers) > 1 and is_dataclass(output) and not isinstance(output, type):
            told = asdict(output)
            return {name: told[name] for name, _ in writers}
        values = (output,) if len(writers) == 1 else output or ()
        return {name: write(value) for (name, write), value in zip(writers, values, strict=True)}

    return result


def _writer(declared: Type) -> Callable[[Any], Any]:
    """How a value of a type is told."""
    if isinstance(declared, ListOf):
        item = _writer(declared.item)
        return lambda value: [item(each) for each in value]
    return methodcaller("hex") if declared == Named("data") else _plain


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
