"""The attributes that an operation is given in text, as the values that its class declares (sections 5.3, 13.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .attributes import Mismatch, kind_text, of_kind
from .common_attributes import COMMON_ATTRIBUTES
from .operation import Operation, Refusal
from .spelling import did_you_mean
from .text_tree import Given, TextOperation


class MisplacedAttribute(Exception):
    """An attribute is unknown, missing or of another kind; `place` is where it stands, if it does."""

    def __init__(self, refusal: Refusal, place: tuple[int, int] | None) -> None:
        self.refusal = refusal
        self.place = place
        super().__init__(refusal.message)


def own_and_common(text: TextOperation, declared: type[Operation]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes that the operation declares, and those that any may carry. Raises `MisplacedAttribute`."""
    kinds, required = declared.own_attributes, declared.required_attributes
    if not text.attributes and not required:
        return {}, {}
    said = declared.attributes_of(text.result_types or ())
    missing = [name for name in required if name not in said]
    wanted = dict.fromkeys([name for name in text.attributes if name in kinds] + missing)
    own = {name: stated(text.attributes, name, kinds[name]) for name in wanted}
    common = {name: given for name, given in text.attributes.items() if name not in own}
    return {**said, **own}, common_of(common, list(kinds))


def common_of(
    attributes: Mapping[str, Given], own: list[str], others: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Attributes of which each is one that any operation may carry, or one of `others`, by kind, in their order.

    Raises `MisplacedAttribute`.
    """
    if not attributes:
        return {}
    kinds = {**COMMON_ATTRIBUTES, **(others or {})}
    for name, given in attributes.items():
        if name not in kinds:
            refusal = Refusal(
                "types",
                f"there is no attribute {name[:40]!r}",
                f"one of {', '.join([*own, *kinds])}",
                "LANG-05.3-01",
                did_you_mean(name, [*own, *kinds]),
            )
            raise MisplacedAttribute(refusal, (given.start, given.end))
    return {name: stated(attributes, name, kind) for name, kind in kinds.items() if name in attributes}


def stated(attributes: Mapping[str, Given], name: str, kind: Any) -> Any:
    """The value of an attribute, of its kind. Raises `MisplacedAttribute`."""
    given = attributes.get(name)
    if given is None:
        message = f"the attribute {name} is missing"
        raise MisplacedAttribute(Refusal("types", message, f"{name} = {kind_text(kind)}", "LANG-01-07", ""), None)
    try:
        return of_kind(given.value, kind)
    except Mismatch:
        wanted = kind_text(kind)
        refusal = Refusal("types", f"{name} is not {wanted}", f"{name} = {wanted}", "LANG-01-07", "")
    except Refusal as unknown:
        refusal = unknown
    raise MisplacedAttribute(refusal, (given.start, given.end))
