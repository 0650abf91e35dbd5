"""Reading IR text: from the tree of what it says to modules (spec sections 1, 5, 13.1; LANG-13.1-04, AMB-LANG-66).

Text shows no marks of unknown dimensions and no hidden fields; they follow from what is shown, as in the front end.
What is read has been verified. The operations must have been declared before: import the room whose text it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from .diagnostics import Rejection
from .module import Function, Module
from .operation import OPERATIONS, Refusal
from .refusals import recursion
from .spelling import did_you_mean
from .text import DEVICE_KERNELS, FUNCTION, KERNEL, MESH, MODULE
from .text_attributes import MisplacedAttribute, stated
from .text_findings import Findings
from .text_function import FunctionReader
from .text_parser import parse_text
from .text_tree import TextOperation
from .type_text import sound_mesh
from .types import Mesh
from .verifier import verify

DEFINITIONS = (FUNCTION, KERNEL, MESH, *DEVICE_KERNELS.values())
"""What stands in a module."""


def read_module(source: str, filename: str = "<ir>") -> Module:
    """The only module of a text. Raises as `read_modules`, and `ValueError` when there are none or several."""
    modules = read_modules(source, filename)
    if len(modules) != 1:
        raise ValueError(f"{filename} has {len(modules)} modules, not one")
    return modules[0]


def read_modules(source: str, filename: str = "<ir>") -> tuple[Module, ...]:
    """The modules of a text.

    Raises `Rejection` for text that is malformed (phase lex or parse) or does not verify (phase verify), and
    `UnsupportedConstruct` for what is nested too deep.
    """
    operations, tokens = parse_text(source, filename)
    findings = Findings(tokens)
    modules = [_ModuleReader(each, findings).read() for each in _flat(operations, findings)]
    if findings.found:
        raise Rejection(findings.found)
    for module in modules:
        verify(module)
    return tuple(modules)


def _flat(operations: Sequence[TextOperation], findings: Findings) -> list[TextOperation]:
    """The modules of a text; mlir-opt wraps several into one of its own."""
    found = []
    for operation in operations:
        inner = [each for block in operation.regions for each in block.operations]
        if operation.name == MODULE and inner and all(each.name == MODULE for each in inner):
            found += inner
        elif operation.name == MODULE and len(operation.regions) == 1:
            found.append(operation)
        else:
            findings.report(
                operation,
                "stands where a module is expected" if operation.name != MODULE else "has one region",
                f'"{MODULE}"() ({{...}}) around functions and meshes',
                "LANG-05-03",
                did_you_mean(operation.name, [MODULE]),
            )
    return found


class _ModuleReader:
    """Functions in the order of their calls, since what a call gives follows from what is called."""

    def __init__(self, text: TextOperation, findings: Findings) -> None:
        self.text = text
        self.findings = findings
        self.functions: dict[str, Function] = {}
        self.meshes: dict[str, Mesh] = {}

    def read(self) -> Module:
        """The module; meaningless once something was reported."""
        declared: dict[str, TextOperation] = {}
        for operation in self.text.regions[0].operations:
            name = self._symbol(operation)
            if name is None:
                continue
            if name in declared or name in self.meshes:
                message = f"@{name} is defined twice"
                self.findings.report(operation, message, "one definition of a symbol", "LANG-05-03")
            elif operation.name == MESH:
                self._mesh(name, operation)
            else:
                declared[name] = operation
        for name in [] if self.findings.found else self._order(declared):
            read = FunctionReader(name, declared[name], self.findings, self.functions, self.meshes).read()
            if read is None:
                break  # what calls it cannot be read
            self.functions[name] = read
        given = self.text.attributes.get("sym_name")
        name = given.value if given and isinstance(given.value, str) else ""
        in_order = {name: self.functions[name] for name in declared if name in self.functions}
        return Module(name, in_order, self.findings.place(self.text), self.meshes)

    def _symbol(self, operation: TextOperation) -> str | None:
        """The name of a function or mesh; nothing after a reported error."""
        if operation.name not in DEFINITIONS:
            known = f"one of {', '.join(DEFINITIONS)}"
            remedy = did_you_mean(operation.name, DEFINITIONS)
            self.findings.report(operation, "stands in a module, outside functions", known, "LANG-05-03", remedy)
            return None
        given = operation.attributes.get("sym_name")
        if given is None or not isinstance(given.value, str):
            self.findings.report(operation, "has no name", 'sym_name = "..."', "LANG-05-03")
            return None
        return given.value

    def _mesh(self, name: str, operation: TextOperation) -> None:
        try:
            axes = stated(operation.attributes, "axes", tuple[str, ...])
            self.meshes[name] = sound_mesh(axes, stated(operation.attributes, "shape", tuple[int, ...]))
        except MisplacedAttribute as misplaced:
            self.findings.refused(misplaced.refusal, operation, place=misplaced.place)
        except Refusal as refusal:
            self.findings.refused(refusal, operation)

    def _order(self, declared: Mapping[str, TextOperation]) -> list[str]:
        """The functions, each behind those that it calls; none where one comes back to itself (AMB-LANG-97)."""
        calls: dict[str, list[str]] = {}
        for name, function in declared.items():
            known = ((each, OPERATIONS.get(each.name)) for each in function.walk())
            named = [each.attributes.get(kind.calls) for each, kind in known if kind is not None and kind.calls]
            called = [given.value for given in named if given is not None]
            calls[name] = [each for each in called if isinstance(each, str) and each in declared]
        try:
            return list(TopologicalSorter(calls).static_order())
        except CycleError as error:
            circle = error.args[1]
            self.findings.refused(recursion(circle), declared[circle[-1]])
            return []
