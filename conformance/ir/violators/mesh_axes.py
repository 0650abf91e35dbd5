"""Front ends that accept mesh_axes and lose it, and verifiers of texts that ignore it (section 5.3)."""

import re

from .changes import after, instead
from .verifiers_of_text import overlooks

CLAUSE = "LANG-05.3-04"


def by_name(answer):
    text = re.sub(r"(?<=mesh_axes = \[)[^]]*", lambda found: ", ".join(sorted(found[0].split(", "))), answer["text"])
    return answer | {"text": text}


def spread(answer):
    for function in answer["functions"]:
        axes = None
        for operation in function["operations"]:
            axes = operation["attributes"].get("mesh_axes", axes)
            if axes is not None:
                operation["attributes"]["mesh_axes"] = axes
    return answer


AXES = [
    instead(CLAUSE, "OtherText", "lists the axes of an operation by name in the text",
        "adapter.ReferenceAdapter.language_lower", after(by_name)),
    instead(CLAUSE, "spread", "gives the axes of an operation to those behind it",
        "adapter.ReferenceAdapter.language_lower", after(spread)),
    overlooks(CLAUSE, "any_axis_in_a_text", "an axis in a text that no mesh has", "no mesh has the axis"),
]  # fmt: skip
