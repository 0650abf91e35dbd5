"""Front ends and machines that confuse or lose function values (language specification, 2.3)."""

from .changes import instead
from .language_syntax import refuses, rewrites

VALUE = "LANG-02.3-51"


def with_turned_arguments(self, function, *arguments, env):
    turned = arguments[::-1] if len({argument.dtype for argument in arguments}) == 1 else arguments
    return env.call(env.function_of(function), turned)


def with_warning_at_the_name(self, body):
    name = self.declaration.name_span
    self.findings.warn("types", "nothing uses a parameter", name, "an operation that takes it", "AMB-LANG-187", "")


VALUES = [
    refuses(VALUE, "passed_functions", "refuses a function as an argument", r"\bapply\(\w+, ", "types"),
    rewrites(VALUE, "fixed_functions", "keeps the function of the declaration", r"\bg = (next|twice);", ""),
    rewrites(VALUE, "any_function", "takes a function of another type", r"= minus;", "= twice;"),
    instead(VALUE, "turned_arguments", "calls with the arguments turned around", "graph.control.CallValue.steps",
        with_turned_arguments),
    instead("LANG-02.3-47", "misplaced_warning_of_unused", "warns of what a kernel does not use at the kernel's name",
        "language.modules.FunctionLowering._warn_of_unused", with_warning_at_the_name),
]  # fmt: skip
