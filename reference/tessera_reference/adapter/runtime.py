"""The functions and extensions of the runtime as methods of the protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from inspect import Parameter
from operator import methodcaller
from typing import Any

from tessera_conformance.adapter import Adapter, Refusal, invoke
from tessera_conformance.interface import ABSENT, Method, Type, c_functions, interface
from tessera_conformance.interface import CFunction as CFunction  # the C library takes these from here
from tessera_conformance.interface import Input as Input
from tessera_conformance.interface import Output as Output
from tessera_conformance.protocol import Rejected, Returned, Unsupported, write_outcome
from tessera_conformance.tensors import MalformedTensor, from_wire, to_wire

from ..abi.cache import CacheEntry, name_of
from ..abi.status import Status
from ..ir.diagnostics import read_json
from ..mesh.topology import MeshAxes
from ..runtime import Runtime
from ..runtime.contexts import ModulePolicy
from ..runtime.launches import LaunchConfig
from ..runtime.streams import Carried
from .messages import checked, is_scalar, reader_of, reading
from .session_state import SessionState

# The functions of the runtime in the protocol, and their methods of the adapter.
#
# Most are made from their line in the interface: the arguments are read, the function of `Runtime` is called with them
# in their order, and its outputs are written by the types of the result. The others are explicit methods. A status
# other than TESS_OK becomes a rejection with its text. Plain values pass unread, since the runtime itself checks them.


AREA = interface().areas["runtime"]


class RuntimeMethods(SessionState):
    """The C functions (runtime spec 4)."""

    def output(self, answer: Any) -> Any:
        """Return a function's outputs, None where it has none. Raises `Refusal`."""
        pair = isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], Status)
        status, output = answer if pair else (answer, None)
        if not isinstance(status, Status):
            return answer
        if status is not Status.TESS_OK:
            raise Refusal(status.name, "call", self.runtime.last_error)
        return output

    def done(self, status: Status) -> dict[str, Any]:
        """Return the answer of a function without outputs. Raises `Refusal`."""
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
        """Create a mesh with some axes, of as many devices as there are ids."""
        arranged = MeshAxes(**axes)
        counted = len(deviceIds) if isinstance(deviceIds, list | tuple) else 1
        count = counted if nDevices is None else nDevices
        return {"mesh": self.output(self.runtime.tessMeshCreate(context, deviceIds, count, arranged, null=null))}

    @checked
    def runtime_tessModuleLoad(  # noqa: N802
        self, *, context: Any, image: bytes | int | None, size: Any = None, null: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Load a module from the whole image."""
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

    # tessx...: the machine, schedules, settings, the cache, attachments of work; the others are generated.

    def runtime_tessxDevices(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802, the names of the protocol
        """Return the machine."""
        devices = self.runtime.machine.topology.devices
        return {
            "devices": [
                {"id": device.id, "target": device.target, "memory_bytes": device.memory_bytes} for device in devices
            ]
        }

    @checked
    def runtime_tessxSetSchedule(  # noqa: N802
        self, *, policy: Any, seed: Any = 0, choices: Sequence[int] = (), untimed: Any = False
    ) -> dict[str, Any]:
        """Set the policy of choices."""
        return self.done(self.runtime.tessxSetSchedule(policy, seed, choices, untimed))

    def runtime_tessxGetSchedule(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Return the choices of the run so far."""
        choices = self.runtime.machine.engine.choices
        return {"choices": list(choices.taken), "widths": list(choices.widths)}

    @checked
    def runtime_tessxDescriptors(self, *, stream: Any) -> dict[str, Any]:  # noqa: N802
        """Return the descriptors of queued work."""
        return {
            "descriptors": [_carried(descriptor) for descriptor in self.output(self.runtime.tessxDescriptors(stream))]
        }

    @checked
    def runtime_tessxGraphNodes(self, *, graph: Any) -> dict[str, Any]:  # noqa: N802
        """Return the nodes of a captured graph."""
        nodes = self.output(self.runtime.tessxGraphNodes(graph))
        return {
            "nodes": [{"kind": node.work.kind, "name": node.work.name, "after": list(node.after)} for node in nodes]
        }

    def runtime_tessxCacheEntries(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Return the entries of the cache."""
        entries = self.output(self.runtime.tessxCacheEntries())
        return {"entries": [_entry(name_of(path), entry) for path, entry in entries]}

    def runtime_tessxCacheUse(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Return the number of hits and misses of the cache."""
        return {"hits": self.runtime.code.hits, "misses": self.runtime.code.misses}

    @checked
    def runtime_tessxSetEnvironment(self, *, variables: Mapping[str, str]) -> dict[str, Any]:  # noqa: N802
        """Set the environment that the next tessInit reads."""
        self.runtime.environment = dict(variables)
        return {}

    @checked
    def runtime_tessxExplain(self, *, module: Any) -> dict[str, Any]:  # noqa: N802
        """Return the decisions of the compiler about a module."""
        explanation = self.output(self.runtime.tessxExplain(module))
        names = ("fusion_groups", "tile_shapes", "collective_plans")
        return {"text": explanation.text, "explanation": {name: explanation.value[name] for name in names}}

    @checked
    def runtime_tessxSetModulePolicy(  # noqa: N802
        self,
        *,
        context: Any,
        forbid_fast_math: Any = False,
        enforce_determinism: Any = False,
        trusted_keys: Sequence[bytes] | None = None,
    ) -> dict[str, Any]:
        """Set the permissions of modules."""
        keys = None if trusted_keys is None else tuple(trusted_keys)
        policy = ModulePolicy(bool(forbid_fast_math), bool(enforce_determinism), keys)
        return self.done(self.runtime.tessxSetModulePolicy(context, policy))


def _length(buffer: bytes | int | None) -> int:
    """Return the size where none is given: that of the data."""
    return len(buffer) if isinstance(buffer, bytes) else 0


def _made(declared: Method, name: str) -> Any:
    nullable = bool(declared.c and declared.outputs)
    names = [parameter.name for parameter in declared.parameters]
    result = _results(declared)

    def call(self: RuntimeMethods, *, null: tuple[str, ...] = (), **request: Any) -> dict[str, Any]:
        arguments = map(request.get, names)
        function = getattr(self.runtime, declared.name)
        return result(self.output(function(*arguments, null=null) if nullable else function(*arguments)))

    stated = [*declared.parameters, *(AREA.also if nullable else ())]
    readers = {parameter.name: reader_of(parameter.type) for parameter in stated if not is_scalar(parameter.type)}
    parameters = [
        Parameter(
            parameter.name,
            Parameter.KEYWORD_ONLY,
            default=(() if parameter.name == "null" else None) if parameter.optional else Parameter.empty,
        )
        for parameter in stated
    ]
    method = reading(call, declared.full_name, parameters, readers)
    method.__name__, method.__doc__ = name, declared.doc or f"Call {declared.name}."
    return method


def _results(declared: Method) -> Callable[[Any], dict[str, Any]]:
    """Return a function that names outputs: one value, a tuple of them, or a dataclass with their names."""
    writers = [(output.name, _writer(output.type)) for output in declared.outputs]

    def result(output: Any) -> dict[str, Any]:
        if len(writers) > 1 and is_dataclass(output) and not isinstance(output, type):
            return {name: asdict(output)[name] for name, _ in writers}
        values = (output,) if len(writers) == 1 else output or ()
        return {name: write(value) for (name, write), value in zip(writers, values, strict=True)}

    return result


def _writer(declared: Type) -> Callable[[Any], Any]:
    """Return the writer of a type's values."""
    if declared.get("type") == "array":
        item = _writer(declared.get("items", {}))
        return lambda value: [item(element) for element in value]
    return methodcaller("hex") if declared == {"$ref": "data"} else _plain


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


for _declared in AREA.methods.values():  # every function of the runtime without an explicit method above
    if not hasattr(RuntimeMethods, f"runtime_{_declared.name}") and hasattr(Runtime, _declared.name):
        setattr(RuntimeMethods, f"runtime_{_declared.name}", _made(_declared, f"runtime_{_declared.name}"))


def _carried(carried: Carried) -> dict[str, Any]:
    descriptor = carried.descriptor
    return {
        "name": carried.name,
        "reduction_order": "pairwise" if descriptor.reduction_order is None else descriptor.reduction_order.to_json(),
        "seed": descriptor.seed,
        "stream": descriptor.stream,
        "stable": asdict(descriptor.stable),
        "policy": asdict(carried.policy),
    }


def _entry(path: str, entry: CacheEntry) -> dict[str, Any]:
    key = entry.key
    parts = {"kernel": key.kernel, "shape": key.shape, "dtype": key.dtype, "arch": key.arch}
    texts = {name: part if isinstance(part, str) else repr(part) for name, part in parts.items()}
    return {"kind": entry.kind, **texts, "policy": asdict(entry.tags.policy), "path": path}


# The extensions of the C interface, `tessx...`, as methods of the adapter (tessera_ext.h).
#
# The caller in C reads and writes the values; here they become the parameters of a method, and its result fills the out
# pointers, so that an extension answers as the protocol does.


NULL = 0


class Failed(Exception):
    """A method did not return a value: its outcome in the protocol's form, with its code and text."""

    def __init__(self, outcome: Mapping[str, Any], code: str, text: str) -> None:
        super().__init__(text)
        self.outcome = outcome
        self.code = code


def extensions() -> Mapping[str, CFunction]:
    """Return the extensions by their names in C."""
    return {c_function.name: c_function for c_function in c_functions().values() if c_function.extension}


def answer(adapter: Adapter, function: CFunction, inputs: Sequence[Any]) -> list[Any]:
    """Return the outputs of a function: whole numbers, texts and bytes.

    Inputs are whole numbers, texts and bytes, None for NULL. Raises `Failed`.
    """
    try:
        parameters = from_wire(dict(_parameters(function, inputs)))
        outcome = invoke(adapter, function.method.full_name, parameters)
    except Refusal as refusal:
        outcome = refusal.outcome
    except MalformedTensor as malformed:
        outcome = Rejected("TESS_ERR_INVALID_VALUE", "call", f"{function.name}: {malformed}")
    match outcome:
        case Returned(value):
            returned = to_wire(value, None)
            return [_written(position, returned) for position in function.positions if isinstance(position, Output)]
        case Rejected(code, _, message):
            raise Failed(to_wire(write_outcome(outcome), None), code, message)
        case Unsupported(feature):
            raise Failed(write_outcome(outcome), "TESS_ERR_UNSUPPORTED", f"{function.name}: {feature} is not supported")


def _parameters(function: CFunction, inputs: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the parameters that are given, by name. Raises `Refusal`."""
    declared = [position for position in function.positions if isinstance(position, Input)]
    for parameter, value in zip(declared, inputs, strict=True):
        left_out = (
            value is None
            or (parameter.form == "integer" and value == ABSENT)
            or (parameter.form == "handle" and not value)
        )
        if not (parameter.optional and left_out):
            yield parameter.name, _read(function.name, parameter, value)


def _read(function: str, declared: Input, value: Any) -> Any:
    match declared.form:
        case "data":
            return (value or b"").hex()
        case "bool":
            return bool(value)
        case "json" if value is not None:
            try:
                return read_json(value)
            except ValueError as error:
                text = f"{function}: {declared.name} is {value!r:.100}, no JSON ({error}); expected a JSON text"
                raise Refusal("TESS_ERR_INVALID_VALUE", "call", text) from None
    return value


def _written(declared: Output, returned: Mapping[str, Any]) -> Any:
    match declared.form:
        case "json":
            return json.dumps(returned, separators=(",", ":"))
        case "data":
            return bytes.fromhex(returned[declared.name])
    return returned[declared.name]
