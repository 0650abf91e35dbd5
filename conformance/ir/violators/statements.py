"""Implementations that break one rule of assignments, assertions, barriers or calls as statements (section 2.3)."""

from dataclasses import replace

from tessera_reference.graph.control import Assert, If
from tessera_reference.language import syntax

from .changes import breaks, instead, wrapped
from .control_flow import both_branches, exchanged, runs
from .language_syntax import refuses, rewrites


@breaks("LANG-02.3-19", "assigns to every name that holds the same value", "language.scope.Scope.assign")
def shared_storage(usual, self, name, value, *, partly=False):
    found, scope, known = self.find(name), self, {name}
    while scope is not None:
        known |= {*scope.names, *scope.rebound}
        scope = scope.parent
    for other in known - {name}:
        binding = self.find(other)
        if binding is not None and binding.value is not None and binding.value is found.value:
            usual(self, other, value, partly=partly)
    usual(self, name, value, partly=partly)


def depth_of(scope):
    return 0 if scope.parent is None else 1 + depth_of(scope.parent)


def _returned_exchanged(usual, self, *arguments):
    present = usual(self, *arguments)
    return None if present is None else exchanged(present, lambda value: value.type)


def _late(usual, self, block, arguments, frame):
    late = sorted(block.instructions, key=lambda instruction: isinstance(instruction.operation, Assert))
    return usual(self, replace(block, instructions=tuple(late)), arguments, frame)


@breaks("LANG-04-10", "checks assertions as soon as their condition is known", "graph.interpreter.Interpreter.block")
def early(usual, self, block, arguments, frame):
    ordered = []
    for instruction in block.instructions:
        place = len(ordered)
        if isinstance(instruction.operation, Assert):
            made_by = [at for at, other in enumerate(ordered) if set(other.results) & set(instruction.operands)]
            place = max(made_by, default=-1) + 1
        ordered.insert(place, instruction)
    return usual(self, replace(block, instructions=tuple(ordered)), arguments, frame)


VIOLATIONS = [
    refuses("LANG-02.3-17", "semicolon_wanted", "wants a semicolon after a control statement",
        r"\} (?:return|let|\w+ =)"),
    rewrites("LANG-02.3-17", "semicolon_taken", "takes a semicolon after a control statement",
        r"((?:\)|else) \{[^{}]*\});", r"\1"),
    wrapped("LANG-02.3-19", "not_from_deep", "forgets what is assigned three blocks deep",
        "language.scope.Scope.outside",
        lambda usual, self, name: self.parent.find(name) if depth_of(self) > 2 else usual(self, name)),
    instead("LANG-02.3-19", "untyped_literals", "types an assigned literal by itself", "language.statements.dtype_of",
        lambda type_: None),
    rewrites("LANG-02.3-19", "walrus", "takes := for an assignment", r"(\b\w+) := ", r"\1 = "),
    wrapped("LANG-02.3-28", "returned_exchanged", "exchanges the last two of several returned values",
        "language.modules.FunctionLowering._returned_values", _returned_exchanged),
    rewrites("LANG-02.3-21", "any_expression", "takes any expression as a statement",
        r"(?m)^    (?!return)-?\w+(?: \+ \w+|\[\d\])?;$", ""),
    wrapped("LANG-02.3-21", "unexecuted", "does not execute a func that is called as a statement",
        "language.statements.Statements._call",
        lambda usual, self, call, first: usual(self, call, first) if len(call.callee) > 1 else None),
    wrapped("LANG-04-10", "late", "checks assertions at the end of their block", "graph.interpreter.Interpreter.block",
        _late),
    refuses("LANG-02.3-45", "no_labels", "has no string in a barrier", r'barrier\("'),
    wrapped("LANG-02.3-46", "shallow", "leaves out the assertions of blocks in blocks",
        "language.statements.Statements._statement", lambda usual, self, statement, first:
        None if depth_of(self.scope) > 1 and isinstance(statement, syntax.Assert) else usual(self, statement, first)),
    instead("LANG-02.3-46", "silent", "does not tell the string of an assertion",
        "graph.control.AssertionFailed.__str__", lambda self: "assertion failed"),
    runs("LANG-02.3-46", "eager", "checks the assertions of a block that is not taken", If, both_branches),
    rewrites("LANG-02.3-46", "any_of_tensors", "asserts tensors", r"assert\([A-Z](?: == a)?\);", ""),
    refuses("LANG-02.3-46", "assert_reserved", "reserves the word assert", r"\bassert\b(?! ?\()"),
]  # fmt: skip
