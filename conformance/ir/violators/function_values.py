"""Front ends and machines that confuse or lose function values (language specification, 2.3)."""

from tessera_conformance.strength import replaced
from tessera_reference.adapter import make

from .changes import nothing
from .language_syntax import refuses, rewrites

VALUE, TYPE = "LANG-02.3-51", "LANG-02.3-47"


def with_turned_arguments(self, function, *arguments, env):
    turned = arguments[::-1] if len({argument.dtype for argument in arguments}) == 1 else arguments
    return env.call(env.function_of(function), turned)


VALUES = [
    refuses("passed_functions", VALUE, "refuses a function as an argument", r"\bapply\(\w+, ", "types"),
    rewrites("fixed_functions", VALUE, "keeps the function of the declaration", r"\bg = (next|twice);", ""),
    rewrites("any_function", VALUE, "takes a function of another type", r"= minus;", "= twice;"),
    replaced(VALUE, "calls with the arguments turned around", make,
             ("graph.control.CallValue.steps", with_turned_arguments), name="turned_arguments"),
    replaced(TYPE, "says nothing of what a kernel does not use", make,
             ("language.modules.FunctionLowering._warn_of_unused", nothing), name="no_warning_of_unused"),
]  # fmt: skip
