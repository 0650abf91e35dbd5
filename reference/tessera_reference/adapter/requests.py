"""Reading the parameters of the protocol's methods: what is malformed is refused, what is unknown is ignored.

The harness may add optional parameters, so a method takes any (docs/protocol.md, "Versions"); one that is missing, or
not of its kind, is refused with TESS_ERR_INVALID_VALUE, by name, with what was found and what is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeAlias

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.tensors import Tensor

from ..numerics.attributes import Reader, extents, one_of, whole
from ..numerics.errors import InvalidArgument

__all__ = [
    "FLAGS",
    "HANDLE",
    "INDEX",
    "LEVEL",
    "mapping",
    "mappings",
    "read_by",
    "shapes",
    "tensors",
    "tensors_by_name",
    "tensors_by_rank",
]

Method: TypeAlias = Callable[..., dict[str, Any]]

LEVEL = one_of("strict", "deterministic", "fast")
HANDLE = whole(-(1 << 63), (1 << 63) - 1)
"""Of a context. That it is live is for the contexts to say."""
FLAGS = whole(0, (1 << 64) - 1)
INDEX = whole(0, (1 << 63) - 1)


def read_by(**readers: Reader) -> Callable[[Method], Method]:
    """Have the parameters of a method read by `readers` first. One whose default is None may be given as None.

    The method then raises `Refusal` for a parameter that is missing or that its reader refuses, and `NotSupported`
    for what is too large for this machine.
    """

    def decorate(method: Method) -> Method:
        name = method.__name__.replace("_", ".", 1)
        parameters = {each.name: each for each in list(signature(method).parameters.values())[1:]}

        @wraps(method)
        def reading(self: Any, **given: Any) -> dict[str, Any]:
            try:
                known = {each: _read(name, parameters[each], readers, given) for each in parameters if each in given}
                for each, parameter in parameters.items():
                    if each not in given and parameter.default is Parameter.empty:
                        raise InvalidArgument(name, each, None, "a value, since it has no default")
            except InvalidArgument as problem:
                raise Refusal("TESS_ERR_INVALID_VALUE", "call", str(problem)) from None
            try:
                return method(self, **known)
            except MemoryError:
                raise NotSupported("memory") from None

        return reading

    return decorate


def _read(method: str, parameter: Parameter, readers: Mapping[str, Reader], given: Mapping[str, Any]) -> Any:
    value = given[parameter.name]
    if value is None and parameter.default is None:
        return None
    reader = readers.get(parameter.name)
    return value if reader is None else reader(method, parameter.name, value)


def mapping(operation: str, name: str, value: Any) -> Mapping[str, Any]:
    """Read an object: names and their values."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidArgument(operation, name, value, "an object")
    return value


def mappings(operation: str, name: str, value: Any) -> Sequence[Mapping[str, Any]]:
    """Read a list of objects."""
    return [mapping(operation, f"{name}[{i}]", each) for i, each in enumerate(_listed(operation, name, value))]


def tensors(operation: str, name: str, value: Any) -> Sequence[Tensor]:
    """Read a list of tensors."""
    return [_tensor(operation, f"{name}[{i}]", each) for i, each in enumerate(_listed(operation, name, value))]


def tensors_by_name(operation: str, name: str, value: Any) -> Mapping[str, Tensor]:
    """Read an object whose values are tensors."""
    return {key: _tensor(operation, f"{name}.{key}", each) for key, each in mapping(operation, name, value).items()}


def tensors_by_rank(operation: str, name: str, value: Any) -> Sequence[Mapping[str, Tensor]]:
    """Read a list of objects whose values are tensors."""
    return [tensors_by_name(operation, f"{name}[{i}]", each) for i, each in enumerate(_listed(operation, name, value))]


def shapes(operation: str, name: str, value: Any) -> Sequence[tuple[int, ...]]:
    """Read a list of shapes."""
    return [extents(operation, f"{name}[{i}]", each) for i, each in enumerate(_listed(operation, name, value))]


def _listed(operation: str, name: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidArgument(operation, name, value, "a list")
    return value


def _tensor(operation: str, name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise InvalidArgument(operation, name, value, "a tensor")
    return value
