"""Other bits, as other machines compute them, at the levels deterministic and fast (language specification, 10).

Each class is a factory for `--impl=py:tessera_conformance.chapters.ir.variants.levels:CLASS`. What is taken from
elsewhere are the substitutes in `substitutes.py`; they are in force while a call is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any, ClassVar
from unittest import mock

from tessera_conformance.adapter import NotSupported
from tessera_conformance.strength import varies
from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.adapter import FEATURES, ReferenceAdapter
from tessera_reference.numerics import elementary
from tessera_reference.numerics.formats import DType, dtype
from tessera_reference.numerics.node_arithmetic import NodeArithmetic
from tessera_reference.numerics.trees import FOLD, PAIRWISE, Tree
from tessera_reference.runtime.collectives import CollectiveWork
from tessera_reference.runtime.launches import CodeCache

from .declared_arithmetic import DeclaredArithmetic
from .own_runtime import own_collectives, own_executables
from .substitutes import (
    Orders,
    Substitution,
    careless,
    careless_functions,
    flushing_operations,
    functions_made_by,
    paired,
    truncated_functions,
    wide_intermediates,
)

COMPUTING = (
    *(f"ir/{room}/*" for room in ("activations", "attention", "casts", "declared-order", "derivatives", "elementwise")),
    *(f"ir/{room}/*" for room in ("evaluation", "expressions", "fourier", "functions", "gradients*", "matmul")),
    *(f"ir/{room}/*" for room in ("normalization", "one-set-of-approximations", "profiles", "ranks", "reductions")),
    *(f"ir/{room}/*" for room in ("softmax", "statistics", "stateful", "worked-examples")),
    *(f"runtime/{room}/*" for room in ("binding", "carried-descriptors", "collective*", "graph-replay")),
    *(f"runtime/{room}/*" for room in ("launch-flags", "module-policy", "policy", "random-numbers", "sample-program")),
    *(f"collectives/{room}/*" for room in ("all-reduce", "operations", "products-and-means", "program-*")),
)
"""Cases that compare the results of arithmetic."""

DETERMINISTIC_LAUNCH = 1
"""TESS_LAUNCH_DETERMINISTIC."""

ACCURATE = dict.fromkeys(elementary.FUNCTIONS, 0.5)


class OtherBits(ReferenceAdapter):
    """The reference under substitutes, but for a context whose policy asks for stable reductions."""

    level: ClassVar[str] = "deterministic"
    accuracies: ClassVar[Mapping[str, float]] = ACCURATE
    subnormals: ClassVar[str] = "kept"
    features: ClassVar[Sequence[str]] = FEATURES

    def __init__(self) -> None:
        super().__init__()
        self.orders = Orders(self.order, self.node)
        self.substitutions: list[Substitution] = [*self.orders.substitutions(), *self.others()]

    def order(self, operation: str, kind: DType, terms: int) -> Tree:
        """In which order an operation reduces so many terms."""
        return FOLD if operation == "matmul" else PAIRWISE

    def node(self, operation: str, kind: DType) -> NodeArithmetic:
        """Return the arithmetic of a node of that order."""
        return NodeArithmetic.canonical(kind)

    def others(self) -> Sequence[Substitution]:
        """Return the other substitutions of this implementation."""
        return ()

    def hello(self) -> dict[str, Any]:
        """Identity and claims."""
        arithmetic = {"level": self.level, "functions": dict(self.accuracies), "subnormals": self.subnormals}
        return super().hello() | {
            "implementation": {"name": type(self).__name__, "version": "1"},
            "capabilities": dict.fromkeys(self.features, "enforced"),
            "arithmetic": arithmetic,
        }

    def numerics_declared(
        self,
        *,
        operation: str,
        dtype: str,
        shapes: Sequence[Sequence[int]],
        attributes: Mapping[str, Any] | None = None,
        element: int | None = None,
    ) -> dict[str, Any]:
        """The order and the arithmetic of an element."""
        if operation not in ("matmul", "sum", "all_reduce"):
            raise NotSupported(f"numerics.declared.{operation}")
        if "algorithm" in (attributes or {}):  # of `collectives.run`, which is the reference's
            given = {"dtype": dtype, "shapes": shapes, "attributes": attributes, "element": element}
            return super().numerics_declared(operation=operation, **given)
        kind, terms = _dtype(dtype), terms_of(operation, shapes, attributes or {})
        tree = self.declared_order(operation, kind, terms, shapes, element or 0)
        return {"tree": tree.to_json(), "arithmetic": self.declared_node(operation, kind).to_json()}

    def declared_order(
        self, operation: str, kind: DType, terms: int, shapes: Sequence[Sequence[int]], element: int
    ) -> Tree:
        """Return the declared order of an element; it is the truth."""
        return self.order(operation, kind, terms)

    def declared_node(self, operation: str, kind: DType) -> NodeArithmetic:
        """Return the declared arithmetic of a node; it is the truth."""
        return self.node(operation, kind)

    def must_not(self, policy: NumericsPolicy, flags: int) -> bool:
        """True if a launch is not to be carried out in this implementation's own way."""
        return bool(policy.stableReductions)

    def __getattribute__(self, name: str) -> Any:
        answer = super().__getattribute__(name)
        return _with(answer, self.in_the_runtime) if name.startswith(("runtime_", "binding_")) else answer

    @contextmanager
    def in_the_runtime(self) -> Iterator[None]:
        """Compute in this implementation's own way while a runtime call is carried out."""
        combined = mock.patch.object(CollectiveWork, "_combined", own_collectives(self))
        with combined, mock.patch.object(CodeCache, "executable", own_executables(self)):
            yield

    @contextmanager
    def substituted(self, context: int | None = None, flags: int = 0) -> Iterator[None]:
        """The substitutes in force, unless the policy of a context wants the canonical order."""
        with self.under(None if context is None else self.policy(context, "tessLaunch"), flags):
            yield

    @contextmanager
    def under(self, policy: NumericsPolicy | None, flags: int = 0) -> Iterator[None]:
        """The substitutes in force, unless a policy wants the canonical order."""
        canonical = policy is not None and self.must_not(policy, flags)
        with ExitStack() as stack:
            for owner, attribute, value in [] if canonical else self.substitutions:
                stack.enter_context(mock.patch.object(owner, attribute, value))
            yield

    def language_execute(self, **params: Any) -> dict[str, Any]:
        """The results of a function."""
        with self.substituted():
            return super().language_execute(**params)

    def language_execute_ranks(self, **params: Any) -> dict[str, Any]:
        """The results of a function on every rank."""
        with self.substituted():
            return super().language_execute_ranks(**params)

    def collectives_execute(self, *, level: str = "strict", **params: Any) -> dict[str, Any]:
        """The results of a program of collectives: below strict, what names no algorithm is in an order of its own."""
        with nullcontext() if level == "strict" else self.substituted():
            return super().collectives_execute(level=level, **params)

    def numerics_evaluate(self, *, context: int | None = None, flags: int = 0, **params: Any) -> dict[str, Any]:
        """The results of an operation."""
        with self.substituted(context, flags):
            return super().numerics_evaluate(context=context, flags=flags, **params)

    def collectives_all_reduce(self, *, context: int | None = None, **params: Any) -> dict[str, Any]:
        """Return every rank's result."""
        with self.substituted(context), self.orders.called("all_reduce"):
            return super().collectives_all_reduce(context=context, **params)


_dtype = dtype


def _with(method: Any, surrounding: Callable[[], AbstractContextManager[None]]) -> Any:
    """A method that is called within a context."""

    def call(**params: Any) -> Any:
        with surrounding():
            return method(**params)

    return call


def terms_of(operation: str, shapes: Sequence[Sequence[int]], attributes: Mapping[str, Any]) -> int:
    """Return the number of terms of an element of the result."""
    if operation == "all_reduce":
        return len(shapes)
    return shapes[0][-1 if operation == "matmul" else attributes.get("axis", -1)]


def lanes(terms: int, width: int = 8) -> Tree:
    """Every width-th term in one lane from left to right, then the lanes as pairs."""
    nests: list[Any] = []
    for lane in range(min(width, terms)):
        nest: Any = lane
        for term in range(lane + width, terms, width):
            nest = [nest, term]
        nests.append(nest)
    return Tree.from_json(paired(nests))


def backwards(terms: int, width: int) -> list[range]:
    """The terms in blocks, each from its last to its first."""
    return [range(min(first + width, terms) - 1, first - 1, -1) for first in range(0, terms, width)]


def folded(terms: Sequence[int]) -> Any:
    """A nesting from left to right."""
    nest: Any = terms[0]
    for term in terms[1:]:
        nest = [nest, term]
    return nest


def blocks(terms: int, width: int = 4) -> Tree:
    """Fused nodes of so many products onto the accumulator, as in a tensor core."""
    nest: Any = "c"
    for first in range(0, terms, width):
        nest = [nest, *range(first, min(first + width, terms))]
    return Tree.from_json(nest)


@varies(
    "LANG-10-05",
    "adds narrow products in truncating blocks of four, wide ones in fused lanes, and ranks in a ring",
    *COMPUTING,
)
class MatrixUnit(OtherBits):
    """Deterministic: narrow products in truncating blocks of four, wide ones in fused lanes, sums and ranks in rings.

    Functions are those of the platform's long double, truncated: within one unit, two where only double has one.
    """

    accuracies: ClassVar[Mapping[str, float]] = dict.fromkeys(elementary.FUNCTIONS, 1.0) | {"erf": 2.0}

    def order(self, operation: str, kind: DType, terms: int) -> Tree:
        """In which order an operation reduces so many terms."""
        if operation != "matmul":
            return Tree.ring(3 if operation == "sum" else 1)
        if terms == 0 or kind.kind != "float":
            return FOLD
        return blocks(terms) if kind.is_narrow else lanes(terms)

    def node(self, operation: str, kind: DType) -> NodeArithmetic:
        """Return the arithmetic of a node of that order."""
        if operation != "matmul" or kind.kind != "float":
            return NodeArithmetic.canonical(kind)
        if kind.is_narrow:
            return DeclaredArithmetic(kind.accumulator, product="fused", rounding="toward_zero", alignment_bits=24)
        return DeclaredArithmetic(kind.accumulator, product="fused")

    def others(self) -> Sequence[Substitution]:
        """Return the other substitutions of this implementation."""
        return truncated_functions()


@varies(
    "LANG-10-05", "adds whole groups of four columns in lanes, and what is left over from left to right", *COMPUTING
)
class VectorTail(OtherBits):
    """Deterministic: whole groups of four columns in lanes, the columns left over from left to right."""

    def order(self, operation: str, kind: DType, terms: int) -> Tree:
        """In which order an operation reduces so many terms."""
        return PAIRWISE if operation != "matmul" else FOLD if terms == 0 else lanes(terms)

    def declared_order(
        self, operation: str, kind: DType, terms: int, shapes: Sequence[Sequence[int]], element: int
    ) -> Tree:
        """Return the declared order of an element; it is the truth."""
        if operation == "matmul" and element % shapes[1][-1] >= shapes[1][-1] & ~3:
            return FOLD
        return self.order(operation, kind, terms)

    def others(self) -> Sequence[Substitution]:
        """Return the other substitutions of this implementation."""
        return self.orders.columns_left_over(4)


@varies("AMB-RT-75", "has no subnormals, adds from left to right and fuses products, and says so", *COMPUTING)
class Flushing(OtherBits):
    """Deterministic: no subnormals but those of fp8, and says so; sums from left to right, products fused."""

    subnormals: ClassVar[str] = "flushed"

    def order(self, operation: str, kind: DType, terms: int) -> Tree:
        """In which order an operation reduces so many terms."""
        return FOLD

    def node(self, operation: str, kind: DType) -> NodeArithmetic:
        """Return the arithmetic of a node of that order."""
        if kind.kind != "float":
            return NodeArithmetic.canonical(kind)
        return DeclaredArithmetic(kind.accumulator, product="fused", subnormals="flushed")

    def others(self) -> Sequence[Substitution]:
        """Return the other substitutions of this implementation."""
        return flushing_operations()


@varies("AMB-RT-75", "starts products from their first term, and says so", *COMPUTING)
class FromTheFirstTerm(OtherBits):
    """Deterministic: a sum of negative zeros is one, since no +0 comes before it."""

    def numerics_declared(self, *, operation: str, dtype: str, **arguments: Any) -> dict[str, Any]:
        """The order and the arithmetic of an element."""
        answer = super().numerics_declared(operation=operation, dtype=dtype, **arguments)
        if operation == "matmul" and _dtype(dtype).kind == "float":
            answer["arithmetic"] = {**answer["arithmetic"], "start": "none"}
        return answer

    def others(self) -> Sequence[Substitution]:
        """Return the other substitutions of this implementation."""
        return self.orders.from_the_first_term()


@varies("AMB-RT-75", "adds blocks of eight from the last to the first, and the blocks as pairs", *COMPUTING)
class Blocked(OtherBits):
    """Deterministic: products and sums in blocks, ranks from the last to the first."""

    def order(self, operation: str, kind: DType, terms: int) -> Tree:
        """In which order an operation reduces so many terms."""
        if terms == 0:
            return FOLD if operation == "matmul" else PAIRWISE
        if operation == "all_reduce":
            return Tree.from_json(folded(range(terms - 1, -1, -1)))
        return Tree.from_json(paired([folded(block) for block in backwards(terms, 8)]))


@varies("AMB-LANG-137", "adds in another order on every call, fused, wider or flushed as it comes", *COMPUTING)
class Quick(OtherBits):
    """Fast: another order on every call, fused, wider or flushed as it comes; functions off by three units.

    Nothing of it is declared but the arithmetic of a node, since orders are taken where they are given.
    """

    level: ClassVar[str] = "fast"
    accuracies: ClassVar[Mapping[str, float]] = {}
    subnormals: ClassVar[str] = "flushed"

    def order(self, operation: str, kind: DType, terms: int) -> Tree:
        """In which order an operation reduces so many terms."""
        return self.orders.shuffled(terms) if terms else FOLD

    def node(self, operation: str, kind: DType) -> NodeArithmetic:
        """Return the arithmetic of a node of that order."""
        if kind.kind != "float":
            return NodeArithmetic.canonical(kind)
        wide = dtype("fp64") if kind.is_narrow else kind.accumulator
        return DeclaredArithmetic(wide, product="fused", subnormals="kept" if kind.bits == 8 else "flushed")

    def must_not(self, policy: NumericsPolicy, flags: int) -> bool:
        """True if a launch is to have the canonical bits."""
        return bool(policy.stableReductions or policy.deterministic or flags & DETERMINISTIC_LAUNCH)

    def others(self) -> Sequence[Substitution]:
        """Return the other substitutions of this implementation."""
        return [*careless_functions(), *wide_intermediates(), *flushing_operations()]


@varies("AMB-LANG-136", "has functions that are off by up to 48 units, and declares 50", *COMPUTING)
class Unbounded(Quick):
    """Fast: functions that are further off than any library's."""

    accuracies: ClassVar[Mapping[str, float]] = dict.fromkeys(elementary.FUNCTIONS, 50.0)

    def others(self) -> Sequence[Substitution]:
        """Return the other substitutions of this implementation."""
        return [*functions_made_by(partial(careless, units=16.0)), *wide_intermediates(), *flushing_operations()]
