"""Reading one function of IR text: names to values, operations to instructions (LANG-05-01, LANG-11-01).

An operation about which something was reported defines its results all the same, so that nothing is said about what
uses them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..numerics.array import Array
from .attributes import Mismatch, array_of
from .builder import fields_of
from .diagnostics import UnsupportedConstruct
from .dimensions import joined_all, shown, with_marks
from .module import Block, Exit, Function, Instruction, Value
from .operation import OPERATIONS, Operation, Refusal, Shown, Unimplemented
from .profiles import refuse_narrow_accumulation
from .refusals import other_type
from .spelling import counted, did_you_mean
from .text import DEVICE_KERNELS, KERNEL, TERMINATORS
from .text_attributes import MisplacedAttribute, common_of, own_and_common, stated
from .text_findings import Findings
from .text_scope import Operands, TextScope
from .text_tree import Given, Signature, TextBlock, TextOperation
from .trampoline import Walk, trampoline
from .types import Mesh, Scalar, Tensor, Type

OF_FUNCTIONS = {"schedule": tuple[Any, ...]}
"""What a function may carry beside the attributes of section 5.3 (AMB-LANG-16)."""

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
    """Reads one function; `functions` has those that it calls."""

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
        """The function, meaningless where something was reported; nothing where it has no signature."""
        text, kernel = self.text, self.text.name == KERNEL
        device = next((level for level, name in DEVICE_KERNELS.items() if name == text.name), "")
        given = text.attributes.get("function_type")
        if given is None or not isinstance(given.value, Signature) or len(text.regions) != 1:
            self.findings.report(
                text, "a function has a signature and one region", "function_type = (T, T) -> (T)", "LANG-05-03"
            )
            return None
        block = text.regions[0]
        attributes = {name: each for name, each in text.attributes.items() if name not in ("sym_name", "function_type")}
        arguments = self._parameters(block, given.value, attributes)
        body = trampoline(self.block(block, arguments, text, "return")) or Block(arguments, (), ())
        defaults = self._defaults(attributes, arguments)
        try:
            common = common_of(attributes, [], OF_DEVICE_KERNELS if device else OF_FUNCTIONS)
        except MisplacedAttribute as misplaced:
            self.findings.refused(misplaced.refusal, text, place=misplaced.place)
            common = {}
        results = self._results(given.value.results, arguments if kernel else None)
        return Function(self.name, body, results, self.findings.place(text), common, kernel, defaults, device)

    # The signature

    def _parameters(self, block: TextBlock, signature: Signature, attributes: dict[str, Given]) -> tuple[Value, ...]:
        """The parameters; their own names, where a tool has renamed them, stand in the attribute `parameters`."""
        types = tuple(argument.type for argument in block.arguments if argument.type is not None)
        if types != signature.operands:
            self.findings.report(
                self.text,
                f"the block takes ({', '.join(map(str, types))})",
                f"the parameters of function_type: ({', '.join(map(str, signature.operands))})",
                "LANG-11-01",
            )
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
        """`defaults = {b = 1.5}`: values of parameters that may be left out (AMB-LANG-74)."""
        given = attributes.pop("defaults", None)
        if given is None:
            return {}
        types = {value.name: value.type for value in parameters}
        found = {}
        try:
            for name, value in given.value.items() if isinstance(given.value, dict) else [("", None)]:
                type_ = types.get(name)
                if not isinstance(type_, Tensor | Scalar):
                    raise Mismatch
                found[name] = array_of(value, type_.dtype)
        except Mismatch:
            message, requirement = "a default is none of its parameter's type", "defaults = {parameter = value}"
            refusal = Refusal("types", message, requirement, "AMB-LANG-74", "")
            self.findings.refused(refusal, self.text, place=(given.start, given.end))
        return found

    def _results(self, given: tuple[Type, ...], parameters: Sequence[Value] | None) -> tuple[Type, ...]:
        """The types of the signature, with what is known of their dimensions; of a kernel from its parameters."""
        known = joined_all(self.returned)
        if parameters is not None:
            known = tuple(value.type for value in parameters if isinstance(value.type, Tensor))
        return tuple(map(with_marks, given, known)) if known and len(known) == len(given) else given

    # Blocks

    def block(
        self, text: TextBlock, arguments: tuple[Value, ...], owner: TextOperation, ending: Exit
    ) -> Walk[Block | None]:
        """A block of an operation, which usually ends with `ending`; nothing after a reported error about its end."""
        before = len(self.scope.defined)
        for argument, value in zip(text.arguments, arguments, strict=True):
            self.scope.bind(argument, [value], owner)
        instructions: list[Instruction] = []
        end: tuple[Exit, Operands] | None = None
        for position, operation in enumerate(text.operations):
            if operation.name in TERMINATORS:
                end = TERMINATORS[operation.name], self.terminator(operation, ending)
                if position + 1 < len(text.operations):
                    message, remedy = "stands behind the end of its block", "move it above the terminator"
                    self.findings.report(text.operations[position + 1], message, "nothing", "LANG-01-06", remedy)
                break
            operands = self.operands(operation)
            regions = (yield self.regions(operation, operands)) if operation.regions else ()
            made = self.instruction(operation, operands, regions)
            if made is not None:
                instructions.append(made)
        if end is None:
            name = next(name for name, kind in TERMINATORS.items() if kind == ending)
            refusal = Refusal("types", "the block has no terminator", f'"{name}"(...) at its end', "LANG-01-06", "")
            self.findings.refused(refusal, owner, place=(text.end, text.end + 1))
        self.scope.forget(before)
        if end is None or None in end[1]:
            return None
        results = tuple(value for value in end[1] if value is not None)
        return Block(arguments, tuple(instructions), results, end[0])

    def terminator(self, operation: TextOperation, ending: Exit) -> Operands:
        """What a block leaves with."""
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
        """The regions of an operation; what their arguments are follows from its operands. Nothing after an error."""
        declared = OPERATIONS.get(operation.name)
        types = tuple(value.type for value in operands if value is not None)
        wanted: Sequence[tuple[Type, ...] | None] = [None] * len(operation.regions)
        if declared is not None and len(types) == len(operands) and _takes(declared, len(types)):
            known = declared.region_arguments(types)
            wanted = known if len(known) == len(operation.regions) else wanted
        blocks: list[Block | None] = []
        for text, expected in zip(operation.regions, wanted, strict=True):
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
        """An operation other than a terminator; nothing after a reported error, also about its parts."""
        values = tuple([value for value in operands if value is not None])
        made: tuple[Operation, tuple[Type, ...]] | None = None
        common: dict[str, Any] = {}
        try:
            declared = _declared(operation)
            if len(values) == len(operands) and regions is not None:
                own, common = own_and_common(operation, declared)
                stated_profile = common.get("numerics_profile", self.profile)
                made = self._made(operation, declared, values, own, regions, stated_profile)
        except MisplacedAttribute as misplaced:
            self.findings.refused(misplaced.refusal, operation, place=misplaced.place)
        except Refusal as refusal:
            operand_types = tuple(f"%{value.name} is {value.type}" for value in values)
            self.findings.refused(refusal, operation, operand_types)
        except Unimplemented as missing:
            raise UnsupportedConstruct(missing.feature, self.findings.place(operation)) from None
        if made is None or regions is None:
            self.scope.define_nothing(operation)
            return None
        results = self.scope.define(operation, made[1])
        return Instruction(made[0], values, results, self.findings.place(operation), regions, common)

    def operands(self, operation: TextOperation) -> Operands:
        """The values that an operation uses, which must be visible and have the types that it states."""
        found = [self.scope.use(operand, operation) for operand in operation.operands]
        types = operation.operand_types
        if types is None:
            return found
        if len(types) != len(found):
            message = f"{counted(len(found), 'operand')}, {counted(len(types), 'type')}"
            self.findings.report(operation, message, "a type for each operand", "LANG-11-01")
            return [None] * max(1, len(found))
        for place, (value, type_) in enumerate(zip(found, types, strict=True)):
            if value is not None and value.type != type_ and shown(value.type) != type_:
                self.findings.refused(other_type(f"%{value.name}", type_, value.type), operation)
                found[place] = None
        return found

    def _made(
        self,
        operation: TextOperation,
        declared: type[Operation],
        operands: tuple[Value, ...],
        own: dict[str, Any],
        regions: tuple[Block, ...],
        profile: str | None,
    ) -> tuple[Operation, tuple[Type, ...]]:
        """The operation and its results, which are as the text states them. Raises `Refusal`."""
        _check_counts(operation, declared)
        types = tuple([value.type for value in operands])
        named = sum([name.count for name in operation.results])
        stated_types = operation.result_types
        if declared.handle and named == 1 and stated_types is None:
            named = 0
        if stated_types is not None and len(stated_types) != named:
            raise Refusal(
                "types",
                f"{counted(named, 'result')}, {counted(len(stated_types), 'type')}",
                "a type for each result",
                "LANG-11-01",
                "",
            )
        hidden = declared.hidden(Shown(types, own, stated_types, regions, self.functions, self.meshes))
        made: Operation = declared(**fields_of(declared, types), **own, **hidden)
        refuse_narrow_accumulation(made, profile)
        inferred = made.results()
        if len(inferred) != named:
            raise Refusal(
                "types",
                f"{counted(named, 'result')} named, it has {len(inferred)}",
                "a name for each",
                "LANG-11-01",
                "",
            )
        for type_, given in zip(inferred, inferred if stated_types is None else stated_types, strict=True):
            if type_ != given and shown(type_) != given:
                raise other_type("the result", given, type_)
        return made, inferred


def _declared(operation: TextOperation) -> type[Operation]:
    """The class of an operation. Raises `Refusal` when there is none."""
    found = OPERATIONS.get(operation.name)
    if found is None:
        remedy = did_you_mean(operation.name, [*OPERATIONS, *TERMINATORS])
        raise Refusal("types", f"unknown operation {operation.name[:60]}", "an operation", "LANG-05.2-01", remedy)
    return found


def _takes(declared: type[Operation], count: int) -> bool:
    """Whether an operation takes that many operands."""
    fixed = len(declared.singles)
    return count == fixed or (count > fixed and declared.rest != "")


def _check_counts(operation: TextOperation, declared: type[Operation]) -> None:
    """Operands as many as declared, in the places their labels say, and regions. Raises `Refusal`."""
    count = len(operation.operands)
    if not _takes(declared, count):
        names = [*declared.singles, *([f"{declared.rest}..."] if declared.rest else [])]
        listed = ", ".join(f"%{name}" for name in names)
        raise Refusal("types", f"{counted(count, 'operand')} given", f"({listed})", "LANG-11-01", "")
    places = [*declared.singles, *[declared.rest] * (count - len(declared.singles))]
    for operand, name in zip(operation.operands, places, strict=True):
        if operand.label not in ("", name):
            raise Refusal(
                "types", f"%{operand.label}(...) stands where %{name} does", f"%{name}(...)", "LANG-11-01", ""
            )
    if len(operation.regions) != len(declared.regions):
        wanted = f"regions: {', '.join(declared.regions)}" if declared.regions else "no region"
        raise Refusal("types", f"{counted(len(operation.regions), 'region')} given", wanted, "LANG-01-06", "")
