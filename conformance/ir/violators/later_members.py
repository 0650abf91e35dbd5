"""Verifiers that check the first function of a text, or its first module (language specification, 6.3, 7.3 and 11)."""

from dataclasses import replace

from .changes import wrapped


def first_function(usual, level, module, target):
    name, *_ = module.functions
    return usual(level, replace(module, functions={name: module.functions[name]}), target)


def first_module(usual, level, module, target):
    return usual(level, module, target) if module.name == "m" else None


LATER = [
    wrapped(clause, f"{change.__name__}_{level}", f"checks the {change.__name__.replace('_', ' ')} of a text alone",
        "levels.texts.verify_at", change)
    for level, clause in (("schedule", "LANG-11-06"), ("tile", "LANG-07.3-04"))
    for change in (first_function, first_module)
]  # fmt: skip
GRADIENTS = wrapped("LANG-05.5-02", "first_gradients", "checks the gradients of the first module of a text alone",
    "levels.texts.missing_adjoints", lambda usual, module: usual(module) if module.name == "m" else [])  # fmt: skip
