"""Compilation: a program becomes a module image, and a loaded image becomes what runs (runtime spec 8, 10, 17).

It stands on the levels of IR and on the container of the ABI; devices, memory and time are the runtime's.
"""

from .compiler import Compiler
from .executables import Executable, executable_from, executables_of, explain_launch, specialise
from .explanation import explanation_json, explanation_text, explanation_value
from .images import Extras, compile_module, image_of_graph, targets_named

__all__ = [
    "Compiler",
    "Executable",
    "Extras",
    "compile_module",
    "executable_from",
    "executables_of",
    "explain_launch",
    "explanation_json",
    "explanation_text",
    "explanation_value",
    "image_of_graph",
    "specialise",
    "targets_named",
]
