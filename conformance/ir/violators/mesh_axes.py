"""Front ends that accept mesh_axes and lose it, and verifiers of texts that ignore it (section 5.3)."""

import re

from tessera_conformance.strength import replaced, violates
from tessera_reference.adapter import ReferenceAdapter

from .verifiers_of_text import overlooks

CLAUSE = "LANG-05.3-04"


class Losing(ReferenceAdapter):
    """The reference with other attributes of operations in its Graph IR."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def language_lower(self, **request):
        """Return the functions with changed attributes of their operations."""
        answer = super().language_lower(**request)
        for function in answer["functions"]:
            self.change([operation["attributes"] for operation in function["operations"]])
        return answer


@violates(CLAUSE, "lists the axes of an operation by name in the text")
class OtherText(ReferenceAdapter):
    def language_lower(self, **request):
        answer = super().language_lower(**request)
        text = re.sub(r"(mesh_axes = \[)([^]]*)", lambda found: found[1] + by_name(found[2]), answer["text"])
        return answer | {"text": text}


def by_name(axes):
    """Return a list of names in alphabetical order."""
    return ", ".join(sorted(axes.split(", ")))


def losing(name, description, change):
    """Return a violation that changes the attributes of a function's operations, in order."""
    return replaced(CLAUSE, description, lambda: Losing(change), name=name)


def listed(change):
    """Return a change of every list of mesh axes."""

    def apply(operations):
        for attributes in operations:
            if "mesh_axes" in attributes:
                attributes["mesh_axes"] = change(list(attributes["mesh_axes"]))

    return apply


def dropped(operations):
    for attributes in operations:
        attributes.pop("mesh_axes", None)


def spread(operations):
    axes = None
    for attributes in operations:
        axes = attributes.get("mesh_axes", axes)
        if axes is not None:
            attributes["mesh_axes"] = axes


KEPT = [losing("spread", "gives the axes of an operation to those behind it", spread)]

TEXTS = [overlooks("any_axis_in_a_text", CLAUSE, "an axis in a text that no mesh has", "no mesh has the axis")]
