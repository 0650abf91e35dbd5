"""Verification of SSA form, regions, symbols, types and numerics profiles (spec sections 1, 5, 10, 11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from ..numerics.formats import DType
from .attributes import PROFILES, check_common
from .diagnostics import Diagnostic, Location, UnsupportedConstruct, counted
from .operation import (
    Block,
    Exit,
    Function,
    Instruction,
    Module,
    Operation,
    Problems,
    Refusal,
    Shown,
    Unimplemented,
    Walk,
    diagnostic_of,
    other_type,
    recursion,
    refused_by,
    trampoline,
)
from .text import sound_mesh
from .types import ROW_MAJOR, Dims, Scalar, Tensor, Type, Value, agrees, dtype_of, fits, own_dims

# Numerics that agree with the profile in force (spec sections 10, 11; LANG-11-13, LANG-11-16, AMB-LANG-69).
#
# A profile belongs to a function or to one instruction, which takes precedence (AMB-LANG-111); a function without one
# runs under that of its callers (AMB-LANG-128).


def loosest(profiles: Iterable[str | None]) -> str | None:
    """Return the loosest of the declared profiles; None if there is none."""
    return min((profile for profile in profiles if profile in PROFILES), key=PROFILES.index, default=None)


def looser_calls(module: Module, order: Iterable[str]) -> list[Diagnostic]:
    """Return the faults of a module's calls; `order` names its functions, each after those that it calls."""
    problems: list[Diagnostic] = []
    run_under: dict[str, str | None] = {}  # each function's profile, else the loosest of its callees
    for name in order:
        function = module.functions[name]
        calls = [instruction for instruction in function.body.walk() if _named(instruction) in run_under]
        own = function.attributes.get("numerics_profile")
        for call in calls:
            callee, ours = _named(call), call.attributes.get("numerics_profile", own)
            refusal = _looser(callee, run_under[callee], None if ours is None else str(ours))
            problems += [diagnostic_of(refusal, call.location)] if refusal else []
        if not function.kernel:  # a launched kernel runs under its own policy
            run_under[name] = str(own) if own is not None else loosest(run_under[_named(call)] for call in calls)
    return problems


def refuse_narrow_accumulation(operation: Operation, profile: str | None) -> None:
    """Refuse an accumulator narrower than the reference's unless the profile is fast; no profile means strict.

    Raises `Refusal`.
    """
    accumulator = getattr(operation, "accum", None)
    if profile == "fast" or not isinstance(accumulator, DType):
        return
    operands = [dtype_of(type_) for _, type_ in operation.operand_types]
    if not operands or operands[0] is None:
        return  # no tensor or scalar operand to compare it with
    canonical = operands[0].accumulator
    if _is_narrower(accumulator, canonical):
        message = f"accumulates in {accumulator}, which is narrower than {canonical}"
        requirement = f"accum={canonical}, or numerics_profile fast"
        raise Refusal("numerics", message, requirement, "LANG-11-13", "leave accum out")


def _looser(name: str, theirs: str | None, ours: str | None) -> Refusal | None:
    """Return the refusal of a function of profile `ours` that calls `name` under a looser one, or None."""
    if ours not in PROFILES or theirs not in PROFILES or PROFILES.index(theirs) >= PROFILES.index(ours):
        return None
    message = f"a {ours} function calls {name}, which is {theirs}"
    requirement = "callees at least as strict as their callers"
    return Refusal("numerics", message, requirement, "LANG-11-16", f"declare {name} as {ours}")


def _is_narrower(dtype: DType, canonical: DType) -> bool:
    """True if `dtype` is of the kind of `canonical` but lacks some of its values."""
    if dtype.kind != canonical.kind:
        return False
    if dtype.kind == "int":
        return dtype.bits < canonical.bits
    stored = dtype.storage
    return stored.fraction_bits < canonical.fraction_bits or stored.exponent_bits < canonical.exponent_bits


def _named(instruction: Instruction) -> str:
    operation = instruction.operation
    return str(getattr(operation, operation.calls)) if operation.calls else ""


# Verification of one function: definitions and uses, regions, and every operation in its place.


class FunctionVerifier:
    """A verifier of one function, which adds its faults to `problems`."""

    def __init__(self, module: Module, function: Function, problems: Problems) -> None:
        self.module = module
        self.function = function
        self.problems = problems
        self.visible: set[Value] = set()
        self.everywhere: set[Value] = set()
        self.names: set[str] = set()
        self.calls: list[str] = []
        self.lost: list[tuple[Value, Location, bool]] = []
        """The uses of values that are not visible there; True for a value of an ended region."""
        self.dims = own_dims(parameter.type for parameter in function.parameters)

    def verify(self) -> list[str]:
        """Return the names of the functions that it calls."""
        function = self.function
        with self.problems.at(function.location):
            self._signature()
        trampoline(self._block(function.body, function.location, "return"))
        for value, place, ended in self.lost:
            self._explain(value, place, ended)
        return self.calls

    def _signature(self) -> None:
        function = self.function
        check_common({**function.attributes, "shape": None, "dtype": None, "layout": None}, (), self.module.meshes)
        types = {parameter.name: parameter.type for parameter in function.parameters}
        for name, array in function.defaults.items():
            expected = types.get(name)
            layout = expected.layout if isinstance(expected, Tensor) else ROW_MAJOR
            actual = Tensor(array.shape, array.dtype, layout) if array.shape else Scalar(array.dtype)
            if expected is None or not fits(expected, actual, {}) or function.kernel:
                message = f"the default of {name} is {actual}"
                raise Refusal("types", message, f"{expected}, of a parameter of a func", "AMB-LANG-74")
        if function.kernel:
            buffers = tuple(value.type for value in function.parameters if isinstance(value.type, Tensor))
            if function.results != buffers:
                message = f"the kernel @{function.name} has other results than its tensor parameters"
                raise Refusal("types", message, "what the tensor parameters hold at the end", "AMB-LANG-98")

    # Blocks

    def _block(self, block: Block, place: Location, ending: Exit) -> Walk[None]:
        """Check a block, whose definitions are not visible after it."""
        defined = [*block.arguments]
        for argument in block.arguments:
            self._define(argument, place)
        for instruction in block.instructions:
            sound = self._instruction(instruction)
            if instruction.regions or instruction.operation.regions:
                yield self._regions(instruction, sound)
            for result in instruction.results:
                self._define(result, instruction.location)
            defined += instruction.results
        for value in block.results:
            self._use(value, place)
        self._leave(block, place, ending)
        self.visible.difference_update(defined)

    def _leave(self, block: Block, place: Location, ending: Exit) -> None:
        """Require that a return ends the function, with values that fit its signature."""
        types = [value.type for value in block.results]
        if block.exit == "return":
            expected = self.function.results
            if not _all_fit(expected, types, self.dims):
                message = f"@{self.function.name} returns ({_listed(types)}), its signature has ({_listed(expected)})"
                self._report(place, message, "the types of the signature", "LANG-11-01")
        elif block.exit == "yield" and ending == "return":
            self._report(place, "the body of a function does not yield", "a return", "LANG-01-06")
        elif block.exit == "unreachable" and types:
            self._report(place, "what is not reached has no results", "no operands", "LANG-01-06")

    def _regions(self, instruction: Instruction, sound: bool) -> Walk[None]:
        """Check the regions of an instruction; if the operation is sound, also the types they take and yield."""
        operation, place = instruction.operation, instruction.location
        if len(instruction.regions) != len(operation.regions):
            message = f"{operation.short_name} has {counted(len(instruction.regions), 'region')}"
            self._report(place, message, f"{len(operation.regions)}: {', '.join(operation.regions)}", "LANG-01-06")
        elif sound:
            arguments, results = operation.region_arguments(_types(instruction.operands)), operation.region_results()
            for region, name, takes, gives in zip(
                instruction.regions, operation.regions, arguments, results, strict=True
            ):
                self._check_region(region, f"{operation.short_name}: {name}", takes, gives, place)
        for region in instruction.regions:
            yield self._block(region, place, "yield")

    def _check_region(
        self, region: Block, name: str, takes: tuple[Type, ...], gives: tuple[Type, ...], place: Location
    ) -> None:
        arguments, yields = _types(region.arguments), _types(region.results)
        if arguments != takes:
            self._report(place, f"{name} takes ({_listed(arguments)})", f"({_listed(takes)})", "LANG-01-06")
        if region.exit == "yield" and not _all_fit(gives, yields, {}):
            self._report(place, f"{name} yields ({_listed(yields)})", f"({_listed(gives)})", "LANG-01-06")

    # Instructions

    def _instruction(self, instruction: Instruction) -> bool:
        """Check an instruction; return True if it is sound, apart from its operands' definitions and its regions."""
        operation, place = instruction.operation, instruction.location
        for operand in instruction.operands:
            self._use(operand, place)
        try:
            self._check(instruction, operation)
        except Refusal as refusal:
            self._refused_operation(refusal, instruction)
        except Unimplemented as missing:
            raise UnsupportedConstruct(missing.feature, place) from missing
        else:
            return True
        return False

    def _check(self, instruction: Instruction, operation: Operation) -> None:
        """Check operands, results, hidden fields and common attributes. Raises `Refusal`."""
        types = _types(instruction.operands)
        declared = tuple([type_ for _, type_ in operation.operand_types])
        if types != declared:
            message = f"the operands are ({_listed(types)}), it is made for ({_listed(declared)})"
            raise Refusal("types", message, "operands of the types that it is made for", "LANG-11-01")
        inferred = operation.results()
        results = _types(instruction.results)
        if inferred != results:
            _check_results(inferred, results)
        cls = type(operation)
        if cls.hidden.__func__ is not Operation.hidden.__func__:  # type: ignore[attr-defined]  # of a class method
            self._check_hidden(instruction, operation, results)
        if instruction.attributes:
            check_common(instruction.attributes, results, self.module.meshes)

    def _check_hidden(self, instruction: Instruction, operation: Operation, results: tuple[Type, ...]) -> None:
        """Check hidden fields, which the printed ones determine, and the existence of functions and meshes."""
        attributes = operation.attributes
        if operation.calls:
            self.calls.append(str(attributes[operation.calls]))
        functions, meshes = self.module.functions, self.module.meshes
        shown = Shown(_types(instruction.operands), attributes, results, instruction.regions, functions, meshes)
        for name, value in type(operation).hidden(shown).items():
            if getattr(operation, name) != value:
                message = f"its {name} are not what follows from its place"
                raise Refusal("types", message, f"{name}: {value}", "LANG-11-01")

    # Values

    def _define(self, value: Value, place: Location) -> None:
        if value in self.everywhere or value.name in self.names:
            requirement = "one definition of a value, and of its name, in a function"
            self._report(place, f"%{value.name} is defined twice", requirement, "LANG-05-01", "choose another name")
        self.visible.add(value)
        self.everywhere.add(value)
        self.names.add(value.name)

    def _use(self, value: Value, place: Location) -> None:
        if value not in self.visible:
            self.lost.append((value, place, value in self.everywhere))

    def _explain(self, value: Value, place: Location, ended: bool) -> None:
        """Report why a value is not visible where it is used, now that all definitions are known."""
        if ended:
            message, remedy = "is defined in a region that has ended", "yield it from there"
        elif value in self.everywhere:
            message, remedy = "is used before it is defined", "move its definition up"
        else:
            message, remedy = "is not defined", ""
        self._report(place, f"%{value.name} {message}", "a value defined above, here or around", "LANG-05-01", remedy)

    # Findings

    def _report(self, place: Location, message: str, requirement: str, clause: str, remedy: str = "") -> None:
        """Keep a finding of category types."""
        self.problems.add(Refusal("types", message, requirement, clause, remedy), place)

    def _refused_operation(self, refusal: Refusal, instruction: Instruction) -> None:
        """Keep a refusal with the operation's name, its operands' types, and their names in the remedy."""
        remedy = refusal.remedy
        for (name, _), value in zip(instruction.operation.operand_types, instruction.operands, strict=False):
            remedy = remedy.replace(f"{{{name}}}", f"%{value.name}")
        refused = refused_by(instruction.operation, refusal, instruction.location)
        self.problems.found.append(replace(refused, remedy=remedy))


def _check_results(inferred: tuple[Type, ...], results: tuple[Type, ...]) -> None:
    """Refuse results of other types than the operation has."""
    if len(inferred) != len(results):
        message = f"it has {counted(len(results), 'result')}, it gives {len(inferred)}"
        raise Refusal("types", message, f"({_listed(inferred)})", "LANG-11-01")
    for expected, actual in zip(inferred, results, strict=True):
        if not agrees(expected, actual):
            raise other_type("the result", actual, expected)


def _all_fit(expected: Sequence[Type], actual: Sequence[Type], dims: Dims) -> bool:
    """True if values of these types may be used where those are expected."""
    return len(expected) == len(actual) and all(map(lambda want, have: fits(want, have, dims), expected, actual))


def _types(values: tuple[Value, ...]) -> tuple[Type, ...]:
    return tuple([value.type for value in values])


def _listed(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types))


# Verification of SSA form, regions, symbols and types (LANG-01-03, LANG-01-06, LANG-05-01, -03, section 11).
#
# The front end builds only IR that verifies; this is for IR from elsewhere, and a check of the front end. The class of
# an operation declares what concerns it alone: operands, results, and what its regions take and yield.


def verify(module: Module) -> None:
    """Raise `Rejection` unless the module is well formed, `UnsupportedConstruct` where this is beyond the reference."""
    problems = Problems()
    for mesh in module.meshes.values():
        with problems.at(module.location):
            sound_mesh(mesh.axes, mesh.shape)
    for name in sorted(module.functions.keys() & module.meshes.keys()):
        twice = Refusal("types", f"@{name} is a function and a mesh", "one definition of a symbol", "LANG-05-03")
        problems.add(twice, module.functions[name].location)
    calls: dict[str, list[str]] = {}
    for name, function in module.functions.items():
        calls[name] = FunctionVerifier(module, function, problems).verify()
    order, circle = order_of_calls(calls)
    if circle:
        problems.add(recursion(circle), module.functions[circle[-1]].location)
    problems.found += looser_calls(module, [name for name in order if name in module.functions])
    problems.require_none()


def order_of_calls(calls: Mapping[str, Sequence[str]]) -> tuple[list[str], Sequence[str]]:
    """Return the functions, each after those that it calls, or else a circle of calls (AMB-LANG-97)."""
    try:
        return list(TopologicalSorter(calls).static_order()), ()
    except CycleError as error:
        return [], error.args[1]
