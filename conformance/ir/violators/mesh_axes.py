"""Front ends that accept mesh_axes and lose it, and verifiers of texts that ignore it (section 5.3)."""

import re

from .changes import around, instead
from .verifiers_of_text import overlooks

CLAUSE = "LANG-05.3-04"


def by_name(axes):
    """Return a list of names in alphabetical order."""
    return ", ".join(sorted(axes.split(", ")))


def other_text(usual, self, **request):
    answer = usual(self, **request)
    text = re.sub(r"(mesh_axes = \[)([^]]*)", lambda found: found[1] + by_name(found[2]), answer["text"])
    return answer | {"text": text}


def spread(usual, self, **request):
    answer = usual(self, **request)
    for function in answer["functions"]:
        axes = None
        for operation in function["operations"]:
            axes = operation["attributes"].get("mesh_axes", axes)
            if axes is not None:
                operation["attributes"]["mesh_axes"] = axes
    return answer


AXES = [
    instead("OtherText", CLAUSE, "lists the axes of an operation by name in the text",
        "adapter.ReferenceAdapter.language_lower", around(other_text)),
    instead("spread", CLAUSE, "gives the axes of an operation to those behind it",
        "adapter.ReferenceAdapter.language_lower", around(spread)),
    overlooks("any_axis_in_a_text", CLAUSE, "an axis in a text that no mesh has", "no mesh has the axis"),
]  # fmt: skip
