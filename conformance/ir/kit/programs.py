"""Programs in cases: the values that they return, their lowered forms, and twins of which one is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tessera_conformance.check import Check
from tessera_conformance.dsl import FIRST_STATEMENT, Values, func, kernel, module, returning, tensor_of
from tessera_conformance.protocol import Observation, Rejected, Returned
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor

SYNTAX: Mapping[str, Any] = {"category": "syntax", "phase": ("lex", "parse")}
"""The refusal of a text outside the grammar: `check.rejects(observation, **SYNTAX)`."""


def evaluate(impl: Implementation, check: Check, source: str, function: str = "f", **inputs: Tensor) -> list[Any]:
    """Return the values that a function returns, computed at the level of the run."""
    level = {} if impl.level == "strict" else {"level": impl.level}
    value = check.returns(impl.language.execute(source=source, function=function, inputs=inputs, **level))
    return list(value["outputs"])


def value_of(impl: Implementation, check: Check, source: str, function: str = "f", **inputs: Tensor) -> Any:
    """Return the one value that a function returns."""
    outputs = evaluate(impl, check, source, function, **inputs)
    check.equal(len(outputs), 1, "the number of returned values")
    return outputs[0]


def returns(
    impl: Implementation,
    check: Check,
    source: str,
    expected: Sequence[Values],
    function: str = "f",
    **inputs: Tensor,
) -> None:
    """Check that the function returns these int32 values, in order; a kernel leaves them in its tensor parameters."""
    outputs = evaluate(impl, check, source, function, **inputs)
    check.equal(len(outputs), len(expected), "the number of returned values")
    for output, value in zip(outputs, expected, strict=True):
        check.bits(output, tensor_of("int32", value))


def syntax_twins(impl: Implementation, check: Check, legal: str, illegal: str) -> None:
    """Check that the parser accepts one program and refuses its twin as outside the grammar."""
    check.accepts(impl.language.parse(source=legal))
    check.rejects(impl.language.parse(source=illegal), **SYNTAX)


def takes_in_funcs(impl: Implementation, check: Check, type_: str) -> None:
    """End the case as another reading if only kernels take parameters of a type (AMB-LANG-187)."""
    in_func, in_kernel = (
        impl.language.verify(source=module(declare(parameters=f"a: {type_}"))) for declare in (func, kernel)
    )
    refused = isinstance(in_func, Rejected) and in_func.code == "types" and isinstance(in_kernel, Returned)
    check.reading("AMB-LANG-187", "refused outside kernels", refused)


def verified_twins(
    impl: Implementation, check: Check, legal: str, illegal: str, category: str | tuple[str, ...], **refusal: Any
) -> None:
    """Check that the verifier accepts one program and refuses its twin with a category."""
    check.accepts(impl.language.verify(source=legal))
    check.rejects(impl.language.verify(source=illegal), category=category, **refusal)


def expression_twins(
    impl: Implementation,
    check: Check,
    legal: str,
    illegal: str,
    parameters: str,
    category: str | tuple[str, ...] = ("types", "syntax", "shapes", "numerics"),
) -> None:
    """Check two expressions that a func returns: the verifier accepts one, and refuses the other at its line."""
    first, second = returning(legal, parameters), returning(illegal, parameters)
    verified_twins(impl, check, first, second, category, at_line=FIRST_STATEMENT)


def accepts_if(check: Check, legal: bool, observation: Observation, **refusal: Any) -> None:
    """Check that a legal text is accepted, or an illegal one refused in this way."""
    if legal:
        check.accepts(observation)
    else:
        check.rejects(observation, **refusal)


def declaring(source: str, profile: str) -> str:
    """Return a program of one func, which declares a numerics profile of its own."""
    opening, heading, body = source.split("\n", 2)
    return "\n".join([opening, f'{heading.removesuffix(" {")} @{{numerics_profile="{profile}"}} {{', body])


def outputs_in(
    impl: Implementation, check: Check, source: str, run: str, inputs: Mapping[str, Tensor], **request: Any
) -> list[Any]:
    """Return the values of the func in a run with a numerics level, whatever the program declares."""
    observation = impl.language.execute(source=source, function="f", inputs=inputs, level=run, **request)
    return list(check.returns(observation)["outputs"])


def declared(impl: Implementation, check: Check, source: str) -> dict[str, list[str]]:
    """Return the names declared in each module, as the parser reports them."""
    found = check.accepts(impl.language.parse(source=source))
    return {entry["name"]: [declaration["name"] for declaration in entry["declarations"]] for entry in found["modules"]}


@dataclass(frozen=True)
class Function:
    """One function of lowered IR."""

    arguments: tuple[str, ...]
    results: tuple[str, ...]
    operations: tuple[Mapping[str, Any], ...]

    def named(self, name: str) -> list[Mapping[str, Any]]:
        """Return the operations of one name, with or without the quotes of the generic form."""
        return [operation for operation in self.operations if operation["name"].strip('"') == name]


def graph_of(impl: Implementation, check: Check, source: str, function: str = "f") -> Function:
    """Return a function of the program's Graph IR."""
    functions = check.accepts(impl.language.lower(source=source, to="graph"))["functions"]
    found = [entry for entry in functions if entry["name"].lstrip("@").rpartition(".")[2] == function]
    check.equal(len(found), 1, f"the number of functions called {function}")
    entry = found[0]
    return Function(tuple(entry["arguments"]), tuple(entry["results"]), tuple(entry["operations"]))


@dataclass(frozen=True)
class TensorType:
    """The parts of a tensor type in a text; a layout that is not stated is row_major (AMB-LANG-67)."""

    shape: tuple[str, ...]
    dtype: str
    layout: str


def tensor_type(text: str) -> TensorType | None:
    """Return the type of `tensor<4x8xbf16; layout=col_major>`, also in its exported spelling; None of another text."""
    compact = "".join(text.split()).replace('"', "")
    match = re.fullmatch(r"(?:!tessera\.)?tensor<((?:\w+?x|\?x)+)([a-z]\w*)(?:[;,]layout=([^>]+))?>", compact)
    if match is None:
        return None
    return TensorType(tuple(match[1].rstrip("x").split("x")), match[2], match[3] or "row_major")
