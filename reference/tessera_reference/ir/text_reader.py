"""Reading IR text to modules: names, attributes, functions (spec sections 1, 5, 13.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from ..numerics.array import Array
from .attributes import COMMON_ATTRIBUTES, Mismatch, array_of, kind_text, of_kind
from .diagnostics import Diagnostic, Location, Rejection, UnsupportedConstruct, counted, did_you_mean
from .operation import (
    OPERATIONS,
    Block,
    Exit,
    Function,
    Instruction,
    Module,
    Names,
    Operation,
    Refusal,
    Shown,
    Unimplemented,
    Walk,
    diagnostic_of,
    fields_of,
    other_type,
    recursion,
    trampoline,
)
from .text import DEVICE_KERNELS, ENDINGS, FUNCTION, KERNEL, MESH, MODULE, TERMINATORS, sound_mesh
from .text_parser import LONGEST_SHOWN, Given, Name, Signature, TextBlock, TextOperation, Tokens, parse_text
from .types import Mesh, Scalar, Tensor, Type, Value, joined_all, marked, shown, with_marks
from .verifier import order_of_calls, refuse_narrow_accumulation, verify

# Faults of a text with sound syntax: collected, so that one reading reports many.


MOST_FOUND = 100
"""The number of findings after which the reading ends."""


class Findings:
    """Diagnostics, and the places of operations in the text. Raises `Rejection` once there are too many."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.found: list[Diagnostic] = []

    def report(self, operation: TextOperation, message: str, requirement: str, clause: str, remedy: str = "") -> None:
        """Keep a finding of category types about an operation, and continue the reading."""
        self.refused(Refusal("types", message, requirement, clause, remedy), operation)

    def refused(
        self,
        refusal: Refusal,
        operation: TextOperation,
        operands: tuple[str, ...] = (),
        place: tuple[int, int] | None = None,
    ) -> None:
        """Keep a refusal about an operation, or about the part of it at `place`."""
        place_found = self.tokens.location(*(place or (operation.start, operation.end)))
        message = f"{operation.name.rpartition('.')[2][:LONGEST_SHOWN]}: {refusal.message}"
        self.found.append(replace(diagnostic_of(refusal, place_found, operands), message=message))
        if len(self.found) == MOST_FOUND:
            raise Rejection(self.found)

    def place(self, operation: TextOperation) -> Location:
        """Return the location of an operation: the one that the text states, else its place in the text."""
        return operation.location or self.tokens.location(operation.start, operation.end)


# The values of names in a function's text, from place to place (LANG-01-03, LANG-05-01).


Operands = list[Value | None]
"""The operands; None where a definition or use has a reported fault."""


class TextScope:
    """The names that are visible at the current place in a function."""

    def __init__(self, function: TextOperation, findings: Findings) -> None:
        self.function = function
        self.findings = findings
        self.names = Names()
        self.visible: dict[str, Value | None] = {}
        self.defined: list[str] = []
        """The visible names, in the order of their definition."""
        self.ended: set[str] = set()
        self.handles: set[str] = set()
        """The visible names of results that are not values."""

    def value(self, hint: str, type_: Type) -> Value:
        """Return a value with a unique name; each unknown dimension becomes one of its own."""
        name = self.names.unique(hint)
        return Value(name, marked(type_, name))

    def define(self, operation: TextOperation, types: tuple[Type, ...]) -> tuple[Value, ...]:
        """Return the results of an operation, which names as many, or bind a handle if it has none (AMB-LANG-280)."""
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
        """Bind the results of an operation with a reported fault to no value."""
        for name in operation.results:
            self.bind(name, [None] * name.count, operation)

    def bind(self, name: Name, values: Sequence[Value | None], operation: TextOperation) -> None:
        """Bind a name to a value, or to several as `%x#0`, `%x#1`."""
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
        """Return the value of a name; None after a reported error."""
        value = self.visible.get(name.text)
        if name.text in self.handles:
            message, remedy = "is the name of an operation without a result", "use what the operation writes"
            self._refuse(name, operation, message, "a value", remedy)
            return None
        if value is not None or name.text in self.visible:
            return value
        if name.text in self.ended:
            message, remedy = "is defined in a region that has ended", "yield it from there"
        elif name.text in self._all_results:
            message, remedy = "is used before it is defined", "move its definition up"
        else:
            message, remedy = "is not defined", did_you_mean(name.text, self.visible, "%{}")
        self._refuse(name, operation, message, "a value defined above, here or around", remedy)
        return None

    def forget(self, before: int) -> None:
        """End a region: remove all but the first `before` visible names."""
        ended = self.defined[before:]
        for name in ended:
            del self.visible[name]
        self.ended.update(ended)
        self.handles.difference_update(ended)
        del self.defined[before:]

    @cached_property
    def _all_results(self) -> frozenset[str]:
        """The names of all results of the function, which tell a premature use from an undefined name."""
        return frozenset(name.text for inner in self.function.walk() for name in inner.results)

    def _refuse(self, name: Name, operation: TextOperation, message: str, requirement: str, remedy: str) -> None:
        refusal = Refusal("types", f"%{name.text} {message}", requirement, "LANG-05-01", remedy)
        self.findings.refused(refusal, operation, place=(name.start, name.start + len(name.text) + 1))


# The attributes of an operation in text, as values of the declared kinds (sections 5.3, 13.1).


class MisplacedAttribute(Exception):
    """An attribute is unknown, missing or of another kind; `place` is its place, if it is written."""

    def __init__(self, refusal: Refusal, place: tuple[int, int] | None) -> None:
        self.refusal = refusal
        self.place = place
        super().__init__(refusal.message)


def own_and_common(text: TextOperation, declared: type[Operation]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the operation's own attributes, and the common ones. Raises `MisplacedAttribute`."""
    kinds, required = declared.own_attributes, declared.required_attributes
    if not text.attributes and not required:
        return {}, {}
    implied = declared.attributes_of(text.result_types or ())
    missing = [name for name in required if name not in implied]
    attributes = dict.fromkeys([name for name in text.attributes if name in kinds] + missing)
    own = {name: stated(text.attributes, name, kinds[name]) for name in attributes}
    common = {name: attribute for name, attribute in text.attributes.items() if name not in own}
    return {**implied, **own}, common_of(common, list(kinds))


def common_of(
    attributes: Mapping[str, Given], own: list[str], others: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return attributes by kind, in order, each a common one or one of `others`.

    Raises `MisplacedAttribute`.
    """
    if not attributes:
        return {}
    kinds = {**COMMON_ATTRIBUTES, **(others or {})}
    for name, attribute in attributes.items():
        if name not in kinds:
            message, remedy = f"there is no attribute {name[:40]!r}", did_you_mean(name, [*own, *kinds])
            refusal = Refusal("types", message, f"one of {', '.join([*own, *kinds])}", "LANG-05.3-01", remedy)
            raise MisplacedAttribute(refusal, (attribute.start, attribute.end))
    return {name: stated(attributes, name, kind) for name, kind in kinds.items() if name in attributes}


def stated(attributes: Mapping[str, Given], name: str, kind: Any) -> Any:
    """Return the value of an attribute, of its kind. Raises `MisplacedAttribute`."""
    value = attributes.get(name)
    if value is None:
        message = f"the attribute {name} is missing"
        raise MisplacedAttribute(Refusal("types", message, f"{name} = {kind_text(kind)}", "LANG-01-07", ""), None)
    try:
        return of_kind(value.value, kind)
    except Mismatch:
        expected = kind_text(kind)
        refusal = Refusal("types", f"{name} is not {expected}", f"{name} = {expected}", "LANG-01-07", "")
    except Refusal as unknown:
        refusal = unknown
    raise MisplacedAttribute(refusal, (value.start, value.end))


# Reading one function of IR text: names to values, operations to instructions (LANG-05-01, LANG-11-01).
#
# An operation with a reported fault still defines its results, so that the operations that use them report nothing
# more.


OF_FUNCTIONS = {"schedule": tuple[Any, ...]}
"""The attributes of a function beside those of section 5.3 (AMB-LANG-16)."""

OF_DEVICE_KERNELS = {
    "grid": tuple[int, ...],
    "block": tuple[int, ...],
    "smem_bytes": int,
    "dynamic_smem": bool,
    "stream": str,
    "target": str,
}
"""The attributes of a kernel entry (section 8.1; AMB-LANG-73)."""


class FunctionReader:
    """A reader of one function; `functions` has those that it calls."""

    def __init__(
        self,
        name: str,
        text: TextOperation,
        findings: Findings,
        functions: Mapping[str, Function],
        meshes: Mapping[str, Mesh],
    ) -> None:
        self.name = name
        self.text = text
        self.findings = findings
        self.functions = functions
        self.meshes = meshes
        self.scope = TextScope(text, findings)
        self.returned: list[tuple[Type, ...]] = []
        profile = text.attributes.get("numerics_profile")
        self.profile = None if profile is None else str(profile.value)

    def read(self) -> Function | None:
        """Return the function, meaningless after a reported error; None if it has no signature."""
        text, kernel = self.text, self.text.name == KERNEL
        device = next((level for level, name in DEVICE_KERNELS.items() if name == text.name), "")
        signature = text.attributes.get("function_type")
        if signature is None or not isinstance(signature.value, Signature) or len(text.regions) != 1:
            message, requirement = "a function has a signature and one region", "function_type = (T, T) -> (T)"
            self.findings.report(text, message, requirement, "LANG-05-03")
            return None
        block = text.regions[0]
        own = ("sym_name", "function_type")
        attributes = {name: attribute for name, attribute in text.attributes.items() if name not in own}
        arguments = self._parameters(block, signature.value, attributes)
        body = trampoline(self.block(block, arguments, text, "return")) or Block(arguments, (), ())
        defaults = self._defaults(attributes, arguments)
        try:
            common = common_of(attributes, [], OF_DEVICE_KERNELS if device else OF_FUNCTIONS)
        except MisplacedAttribute as misplaced:
            self.findings.refused(misplaced.refusal, text, place=misplaced.place)
            common = {}
        results = self._results(signature.value.results, arguments if kernel else None)
        return Function(self.name, body, results, self.findings.place(text), common, kernel, defaults, device)

    # The signature

    def _parameters(self, block: TextBlock, signature: Signature, attributes: dict[str, Given]) -> tuple[Value, ...]:
        """Return the parameters; if a tool has renamed them, the attribute `parameters` has their own names."""
        types = tuple(argument.type for argument in block.arguments if argument.type is not None)
        if types != signature.operands:
            requirement = f"the parameters of function_type: ({', '.join(map(str, signature.operands))})"
            message = f"the block takes ({', '.join(map(str, types))})"
            self.findings.report(self.text, message, requirement, "LANG-11-01")
        hints: Sequence[str] = [argument.text for argument in block.arguments]
        if "parameters" in attributes:
            try:
                own = stated(attributes, "parameters", tuple[str, ...])
                hints = own if len(own) == len(hints) else hints
            except MisplacedAttribute as misplaced:
                self.findings.refused(misplaced.refusal, self.text, place=misplaced.place)
            del attributes["parameters"]
        return tuple(map(self.scope.value, hints, types))

    def _defaults(self, attributes: dict[str, Given], parameters: Sequence[Value]) -> dict[str, Array]:
        """Return the values of optional parameters, `defaults = {b = 1.5}` (AMB-LANG-74)."""
        attribute = attributes.pop("defaults", None)
        if attribute is None:
            return {}
        types = {value.name: value.type for value in parameters}
        defaults = {}
        try:
            for name, value in attribute.value.items() if isinstance(attribute.value, dict) else [("", None)]:
                type_ = types.get(name)
                if not isinstance(type_, Tensor | Scalar):
                    raise Mismatch
                defaults[name] = array_of(value, type_.dtype)
        except Mismatch:
            message, requirement = "a default is none of its parameter's type", "defaults = {parameter = value}"
            refusal = Refusal("types", message, requirement, "AMB-LANG-74", "")
            self.findings.refused(refusal, self.text, place=(attribute.start, attribute.end))
        return defaults

    def _results(self, types: tuple[Type, ...], parameters: Sequence[Value] | None) -> tuple[Type, ...]:
        """Return the types of the signature, with the known dimensions; those of a kernel are its parameters'."""
        joined = joined_all(self.returned)
        if parameters is not None:
            joined = tuple(value.type for value in parameters if isinstance(value.type, Tensor))
        return tuple(map(with_marks, types, joined)) if joined and len(joined) == len(types) else types

    # Blocks

    def block(
        self, text: TextBlock, arguments: tuple[Value, ...], owner: TextOperation, ending: Exit
    ) -> Walk[Block | None]:
        """Return a block of an operation, which usually ends with `ending`; None after a reported error at its end."""
        before = len(self.scope.defined)
        for argument, value in zip(text.arguments, arguments, strict=True):
            self.scope.bind(argument, [value], owner)
        instructions: list[Instruction] = []
        end: tuple[Exit, Operands] | None = None
        for position, operation in enumerate(text.operations):
            if operation.name in TERMINATORS:
                end = TERMINATORS[operation.name], self.terminator(operation, ending)
                if position + 1 < len(text.operations):
                    message, remedy = "follows the end of its block", "move it above the terminator"
                    self.findings.report(text.operations[position + 1], message, "nothing", "LANG-01-06", remedy)
                break
            operands = self.operands(operation)
            regions = (yield self.regions(operation, operands)) if operation.regions else ()
            built = self.instruction(operation, operands, regions)
            if built is not None:
                instructions.append(built)
        if end is None:
            expected = f'"{ENDINGS[ending]}"(...) at its end'
            refusal = Refusal("types", "the block has no terminator", expected, "LANG-01-06", "")
            self.findings.refused(refusal, owner, place=(text.end, text.end + 1))
        self.scope.forget(before)
        if end is None or None in end[1]:
            return None
        results = tuple(value for value in end[1] if value is not None)
        return Block(arguments, tuple(instructions), results, end[0])

    def terminator(self, operation: TextOperation, ending: Exit) -> Operands:
        """Return the operands of the terminator of a block."""
        kind = TERMINATORS[operation.name]
        operands = self.operands(operation)
        if kind == "yield" and ending == "return":
            self.findings.report(operation, "a function does not yield", "tessera.graph.return", "LANG-01-06")
        if operation.results or operation.regions or operation.result_types or (kind == "unreachable" and operands):
            self.findings.report(operation, "a terminator has operands only", f'"{operation.name}"(...)', "LANG-01-06")
        if kind == "return" and None not in operands:
            self.returned.append(tuple(value.type for value in operands if value is not None))
        return operands

    def regions(self, operation: TextOperation, operands: Operands) -> Walk[tuple[Block, ...] | None]:
        """Return the regions of an operation, whose operands determine the argument types; None after an error."""
        declared = OPERATIONS.get(operation.name)
        types = tuple(value.type for value in operands if value is not None)
        expected_types: Sequence[tuple[Type, ...] | None] = [None] * len(operation.regions)
        if declared is not None and len(types) == len(operands) and _takes(declared, len(types)):
            argument_types = declared.region_arguments(types)
            expected_types = argument_types if len(argument_types) == len(operation.regions) else expected_types
        blocks: list[Block | None] = []
        for text, expected in zip(operation.regions, expected_types, strict=True):
            stated_types = tuple(argument.type for argument in text.arguments if argument.type is not None)
            sound = expected is None or stated_types == tuple(map(shown, expected))
            actual = expected if sound and expected is not None else stated_types
            arguments = map(self.scope.value, [argument.text for argument in text.arguments], actual)
            block = yield self.block(text, tuple(arguments), operation, "yield")
            blocks.append(block if sound else None)
            if not sound and expected is not None:
                message = f"a region takes ({', '.join(map(str, stated_types))})"
                self.findings.report(operation, message, f"({', '.join(map(str, expected))})", "LANG-01-06")
        return None if None in blocks else tuple(block for block in blocks if block is not None)

    # Instructions

    def instruction(
        self, operation: TextOperation, operands: Operands, regions: tuple[Block, ...] | None
    ) -> Instruction | None:
        """Return an operation other than a terminator; None after a reported error, also about its parts."""
        values = tuple([value for value in operands if value is not None])
        built: tuple[Operation, tuple[Type, ...]] | None = None
        common: dict[str, Any] = {}
        try:
            declared = _declared(operation)
            if len(values) == len(operands) and regions is not None:
                own, common = own_and_common(operation, declared)
                stated_profile = common.get("numerics_profile", self.profile)
                built = self._made(operation, declared, values, own, regions, stated_profile)
        except MisplacedAttribute as misplaced:
            self.findings.refused(misplaced.refusal, operation, place=misplaced.place)
        except Refusal as refusal:
            operand_types = tuple(f"%{value.name} is {value.type}" for value in values)
            self.findings.refused(refusal, operation, operand_types)
        except Unimplemented as missing:
            raise UnsupportedConstruct(missing.feature, self.findings.place(operation)) from None
        if built is None or regions is None:
            self.scope.define_nothing(operation)
            return None
        results = self.scope.define(operation, built[1])
        return Instruction(built[0], values, results, self.findings.place(operation), regions, common)

    def operands(self, operation: TextOperation) -> Operands:
        """Return the values that an operation uses, which must be visible and have the types that it states."""
        values = [self.scope.use(operand, operation) for operand in operation.operands]
        types = operation.operand_types
        if types is None:
            return values
        if len(types) != len(values):
            message = f"{counted(len(values), 'operand')}, {counted(len(types), 'type')}"
            self.findings.report(operation, message, "a type for each operand", "LANG-11-01")
            return [None] * max(1, len(values))
        for place, (value, type_) in enumerate(zip(values, types, strict=True)):
            if value is not None and value.type != type_ and shown(value.type) != type_:
                self.findings.refused(other_type(f"%{value.name}", type_, value.type), operation)
                values[place] = None
        return values

    def _made(
        self,
        operation: TextOperation,
        declared: type[Operation],
        operands: tuple[Value, ...],
        own: dict[str, Any],
        regions: tuple[Block, ...],
        profile: str | None,
    ) -> tuple[Operation, tuple[Type, ...]]:
        """Return the operation and its results, of the types that the text states. Raises `Refusal`."""
        _check_counts(operation, declared)
        types = tuple([value.type for value in operands])
        named = sum([name.count for name in operation.results])
        stated_types = operation.result_types
        if declared.handle and named == 1 and stated_types is None:
            named = 0
        if stated_types is not None and len(stated_types) != named:
            message = f"{counted(named, 'result')}, {counted(len(stated_types), 'type')}"
            raise Refusal("types", message, "a type for each result", "LANG-11-01", "")
        hidden = declared.hidden(Shown(types, own, stated_types, regions, self.functions, self.meshes))
        built: Operation = declared(**fields_of(declared, types), **own, **hidden)
        refuse_narrow_accumulation(built, profile)
        inferred = built.results()
        if len(inferred) != named:
            message = f"{counted(named, 'result')} named, it has {len(inferred)}"
            raise Refusal("types", message, "a name for each", "LANG-11-01", "")
        for type_, stated in zip(inferred, inferred if stated_types is None else stated_types, strict=True):
            if type_ != stated and shown(type_) != stated:
                raise other_type("the result", stated, type_)
        return built, inferred


def _declared(operation: TextOperation) -> type[Operation]:
    """Return the class of an operation. Raises `Refusal` for an unknown one."""
    declared = OPERATIONS.get(operation.name)
    if declared is None:
        remedy = did_you_mean(operation.name, [*OPERATIONS, *TERMINATORS])
        raise Refusal("types", f"unknown operation {operation.name[:60]}", "an operation", "LANG-05.2-01", remedy)
    return declared


def _takes(declared: type[Operation], count: int) -> bool:
    """True if an operation takes that many operands."""
    fixed = len(declared.singles)
    return count == fixed or (count > fixed and declared.rest != "")


def _check_counts(operation: TextOperation, declared: type[Operation]) -> None:
    """Check operands against the declared number and labels, and regions. Raises `Refusal`."""
    count = len(operation.operands)
    if not _takes(declared, count):
        names = [*declared.singles, *([f"{declared.rest}..."] if declared.rest else [])]
        list_ = ", ".join(f"%{name}" for name in names)
        raise Refusal("types", f"{counted(count, 'operand')} given", f"({list_})", "LANG-11-01", "")
    places = [*declared.singles, *[declared.rest] * (count - len(declared.singles))]
    for operand, name in zip(operation.operands, places, strict=True):
        if operand.label not in ("", name):
            message = f"%{operand.label}(...) is in the place of %{name}"
            raise Refusal("types", message, f"%{name}(...)", "LANG-11-01")
    if len(operation.regions) != len(declared.regions):
        expected = f"regions: {', '.join(declared.regions)}" if declared.regions else "no region"
        raise Refusal("types", f"{counted(len(operation.regions), 'region')} given", expected, "LANG-01-06", "")


# Reading IR text: from the syntax tree to modules (spec sections 1, 5, 13.1; LANG-13.1-04, AMB-LANG-66).
#
# Text shows no marks of unknown dimensions and no hidden fields; they follow from what is shown, as in the front end.
# The result has been verified. The operations must be declared before: import the package of the text's level.


DEFINITIONS = (FUNCTION, KERNEL, MESH, *DEVICE_KERNELS.values())
"""The operations in a module."""


def read_modules(source: str, filename: str = "<ir>") -> tuple[Module, ...]:
    """Return the modules of a text.

    Raises `Rejection` for text that is malformed (phase lex or parse) or does not verify (phase verify), and
    `UnsupportedConstruct` for text that is nested too deep.
    """
    operations, tokens = parse_text(source, filename)
    findings = Findings(tokens)
    modules = [_ModuleReader(operation, findings).read() for operation in _flat(operations, findings)]
    if findings.found:
        raise Rejection(findings.found)
    for module in modules:
        verify(module)
    return tuple(modules)


def _flat(operations: Sequence[TextOperation], findings: Findings) -> list[TextOperation]:
    """Return the modules of a text; mlir-opt wraps several into one of its own."""
    flattened = []
    for operation in operations:
        inner = [nested for block in operation.regions for nested in block.operations]
        if operation.name == MODULE and inner and all(nested.name == MODULE for nested in inner):
            flattened += inner
        elif operation.name == MODULE and len(operation.regions) == 1:
            flattened.append(operation)
        else:
            message = "is in the place of a module" if operation.name != MODULE else "has one region"
            requirement = f'"{MODULE}"() ({{...}}) around functions and meshes'
            findings.report(operation, message, requirement, "LANG-05-03", did_you_mean(operation.name, [MODULE]))
    return flattened


class _ModuleReader:
    """A reader of functions in the order of their calls, since the callee determines the results of a call."""

    def __init__(self, text: TextOperation, findings: Findings) -> None:
        self.text = text
        self.findings = findings
        self.functions: dict[str, Function] = {}
        self.meshes: dict[str, Mesh] = {}

    def read(self) -> Module:
        """Return the module, meaningless after a reported error."""
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
                break  # its callers cannot be read
            self.functions[name] = read
        symbol = self.text.attributes.get("sym_name")
        name = symbol.value if symbol and isinstance(symbol.value, str) else ""
        in_order = {name: self.functions[name] for name in declared if name in self.functions}
        return Module(name, in_order, self.findings.place(self.text), self.meshes)

    def _symbol(self, operation: TextOperation) -> str | None:
        """Return the name of a function or mesh; None after a reported error."""
        if operation.name not in DEFINITIONS:
            expected = f"one of {', '.join(DEFINITIONS)}"
            remedy = did_you_mean(operation.name, DEFINITIONS)
            self.findings.report(operation, "is in a module, outside functions", expected, "LANG-05-03", remedy)
            return None
        name = operation.attributes.get("sym_name")
        if name is None or not isinstance(name.value, str):
            self.findings.report(operation, "has no name", 'sym_name = "..."', "LANG-05-03")
            return None
        return name.value

    def _mesh(self, name: str, operation: TextOperation) -> None:
        try:
            axes = stated(operation.attributes, "axes", tuple[str, ...])
            self.meshes[name] = sound_mesh(axes, stated(operation.attributes, "shape", tuple[int, ...]))
        except MisplacedAttribute as misplaced:
            self.findings.refused(misplaced.refusal, operation, place=misplaced.place)
        except Refusal as refusal:
            self.findings.refused(refusal, operation)

    def _order(self, declared: Mapping[str, TextOperation]) -> list[str]:
        """Return the functions, each after those that it calls; none if one calls itself in a circle (AMB-LANG-97)."""
        calls: dict[str, list[str]] = {}
        for name, function in declared.items():
            calls[name] = []
            for operation in function.walk():
                callee = operation.attributes.get(OPERATIONS.get(operation.name, Operation).calls)
                if callee and isinstance(callee.value, str) and callee.value in declared:
                    calls[name].append(callee.value)
        order, circle = order_of_calls(calls)
        if circle:
            self.findings.refused(recursion(circle), declared[circle[-1]])
        return order
