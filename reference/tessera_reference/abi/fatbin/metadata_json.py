"""Metadata as canonical JSON: one text for each value (schema `tessera:fatbin-metadata`).

Members in order of name, no blanks, UTF-8. Whatever is written otherwise is refused when read, so that an image has one
spelling and what was signed is what was read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from ...numerics.errors import shown
from ..policy import NumericsPolicy
from .checks import malformed, require
from .collective_plans import CollectivePlan
from .entries import Explanation, FusionGroup, KernelEntry, KernelParameter, Metadata, TileShape

__all__ = ["metadata_of_bytes", "metadata_to_bytes"]

Value = TypeVar("Value")


def metadata_to_bytes(metadata: Metadata) -> bytes:
    """The canonical JSON of `metadata`."""
    document = {
        "kernels": [_kernel_document(each) for each in metadata.kernels],
        "policy": None if metadata.policy is None else _members_of(metadata.policy),
        "collective_plans": [_members_of(each) for each in metadata.collective_plans],
        "explanation": {
            "fusion_groups": [_members_of(each) for each in metadata.explanation.fusion_groups],
            "tile_shapes": [
                {"kernel": each.kernel, "operation": each.operation, "extents": dict(each.extents)}
                for each in metadata.explanation.tile_shapes
            ],
        },
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def metadata_of_bytes(data: bytes) -> Metadata:
    """Read metadata. Raises `Failure` with TESS_ERR_INVALID_VALUE for anything but its canonical JSON."""
    try:
        document = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise malformed(f"metadata that is no JSON: {error}", "canonical JSON in UTF-8") from None
    metadata = _metadata(document)
    require(metadata_to_bytes(metadata) == data, "the metadata", data, "its canonical JSON, and true layouts")
    return metadata


def _kernel_document(kernel: KernelEntry) -> dict[str, Any]:
    layout = kernel.layout
    parameters = [
        {**_members_of(parameter), "offset": offset, "size": size}
        for parameter, offset, size in zip(kernel.parameters, layout.offsets, layout.sizes, strict=True)
    ]
    return {**_members_of(kernel), "parameters": parameters, "buffer_size": layout.size}


def _members_of(entry: Any) -> dict[str, Any]:
    return {field.name: getattr(entry, field.name) for field in fields(entry)}


def _metadata(document: object) -> Metadata:
    found = _members("the metadata", document, "kernels", "policy", "collective_plans", "explanation")
    policy = found["policy"]
    return Metadata(
        kernels=_each("kernels", found["kernels"], _kernel),
        policy=None if policy is None else _policy(policy),
        collective_plans=_each("collective_plans", found["collective_plans"], _plan),
        explanation=_explanation(found["explanation"]),
    )


def _kernel(document: object) -> KernelEntry:
    names = [field.name for field in fields(KernelEntry)]
    found = _members("a kernel", document, *names, "buffer_size")
    given = {name: found[name] for name in names}
    given["parameters"] = _each("parameters", given["parameters"], _parameter)
    given["grid"] = _tuple(given["grid"])
    given["block"] = _tuple(given["block"])
    return KernelEntry(**given)


def _parameter(document: object) -> KernelParameter:
    names = [field.name for field in fields(KernelParameter)]
    found = _members("a parameter", document, *names, "offset", "size")
    given = {name: found[name] for name in names}
    return KernelParameter(**{**given, "shape": _tuple(given["shape"])})


def _policy(document: object) -> NumericsPolicy:
    return NumericsPolicy(**_members("the policy", document, *(field.name for field in fields(NumericsPolicy))))


def _plan(document: object) -> CollectivePlan:
    names = [field.name for field in fields(CollectivePlan)]
    return CollectivePlan(**_members("a collective plan", document, *names))


def _explanation(document: object) -> Explanation:
    found = _members("the explanation", document, "fusion_groups", "tile_shapes")
    return Explanation(
        fusion_groups=_each("fusion_groups", found["fusion_groups"], _fusion_group),
        tile_shapes=_each("tile_shapes", found["tile_shapes"], _tile_shape),
    )


def _fusion_group(document: object) -> FusionGroup:
    found = _members("a fusion group", document, "kernel", "operations")
    return FusionGroup(found["kernel"], _tuple(found["operations"]))


def _tile_shape(document: object) -> TileShape:
    found = _members("a tile shape", document, "kernel", "operation", "extents")
    require(isinstance(found["extents"], dict), "extents", found["extents"], "an object")
    return TileShape(found["kernel"], found["operation"], tuple(found["extents"].items()))


def _members(what: str, document: object, *names: str) -> Mapping[str, Any]:
    """The members of an object that has just these."""
    if not isinstance(document, dict) or document.keys() != set(names):
        raise malformed(f"{what} is {shown(document)}", "an object with the members " + ", ".join(names))
    return document


def _each(what: str, document: object, read: Callable[[object], Value]) -> tuple[Value, ...]:
    if not isinstance(document, list):
        raise malformed(f"{what} is {shown(document)}", "a list")
    return tuple(read(each) for each in document)


def _tuple(document: Any) -> Any:
    """A list as a tuple; anything else as it is, for the value to refuse."""
    return tuple(document) if isinstance(document, list) else document
