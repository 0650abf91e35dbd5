"""Which values the names in a function's text stand for, from place to place (LANG-01-03, LANG-05-01)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from .dimensions import marked
from .module import Value
from .naming import Names
from .operation import Refusal
from .spelling import did_you_mean
from .text_findings import Findings
from .text_tree import Name, TextOperation
from .types import Type

Operands = list[Value | None]
"""Without a value where something was reported about its definition or its use."""


class TextScope:
    """The names that are visible where the reading of a function has come to."""

    def __init__(self, function: TextOperation, findings: Findings) -> None:
        self.function = function
        self.findings = findings
        self.names = Names()
        self.visible: dict[str, Value | None] = {}
        self.defined: list[str] = []
        """Those that are visible, in the order of their definition."""
        self.ended: set[str] = set()
        self.handles: set[str] = set()
        """The visible names of results that are no values."""

    def value(self, hint: str, type_: Type) -> Value:
        """A value with a name of its own; each dimension that is not known becomes one of its own."""
        name = self.names.unique(hint)
        return Value(name, marked(type_, name))

    def define(self, operation: TextOperation, types: tuple[Type, ...]) -> tuple[Value, ...]:
        """The results of an operation, which has named as many, or a handle where it has none (AMB-LANG-280)."""
        if not types:
            self.handles.update(name.text for name in operation.results if name.text not in self.visible)
            self.define_nothing(operation)
            return ()
        values: list[Value] = []
        for name in operation.results:
            own = [self.value(name.text, type_) for type_ in types[len(values) : len(values) + name.count]]
            self.bind(name, own, operation)
            values += own
        return tuple(values)

    def define_nothing(self, operation: TextOperation) -> None:
        """Let the results of an operation about which something was reported have no value."""
        for name in operation.results:
            self.bind(name, [None] * name.count, operation)

    def bind(self, name: Name, values: Sequence[Value | None], operation: TextOperation) -> None:
        """Let a name stand for a value, or for several as `%x#0`, `%x#1`."""
        if name.text in self.visible:
            self._refuse(name, operation, "is defined twice", "one definition of a value", "choose another name")
            return
        self.visible[name.text] = values[0]
        self.defined.append(name.text)
        if name.count > 1:
            keys = [f"{name.text}#{index}" for index in range(name.count)]
            self.visible.update(zip(keys, values, strict=True))
            self.defined += keys

    def use(self, name: Name, operation: TextOperation) -> Value | None:
        """The value that a name stands for; nothing after a reported error."""
        found = self.visible.get(name.text)
        if name.text in self.handles:
            message, remedy = "is the name of an operation without a result", "use what the operation writes"
            self._refuse(name, operation, message, "a value", remedy)
            return None
        if found is not None or name.text in self.visible:
            return found
        if name.text in self.ended:
            message, remedy = "is defined in a region that has ended", "yield it from there"
        elif name.text in self._all_results:
            message, remedy = "is used before it is defined", "move its definition up"
        else:
            message, remedy = "is not defined", did_you_mean(name.text, self.visible, "%{}")
        self._refuse(name, operation, message, "a value defined above, here or around", remedy)
        return None

    def forget(self, before: int) -> None:
        """A region ends: all but the first `before` names that are visible have ended with it."""
        ended = self.defined[before:]
        for name in ended:
            del self.visible[name]
        self.ended.update(ended)
        self.handles.difference_update(ended)
        del self.defined[before:]

    @cached_property
    def _all_results(self) -> frozenset[str]:
        """The names of all results of the function, to tell a use that is too early from one of nothing."""
        return frozenset(name.text for inner in self.function.walk() for name in inner.results)

    def _refuse(self, name: Name, operation: TextOperation, message: str, requirement: str, remedy: str) -> None:
        refusal = Refusal("types", f"%{name.text} {message}", requirement, "LANG-05-01", remedy)
        self.findings.refused(refusal, operation, place=(name.start, name.start + len(name.text) + 1))
