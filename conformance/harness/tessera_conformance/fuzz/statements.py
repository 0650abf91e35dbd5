"""Statements and blocks, legal by construction: names are assigned before they are used, loops end, assertions hold.

What the interpretations leave open is left out: a `return` in a loop (AMB-LANG-93), statements after one, assigning a
loop's variable, and a name that an inner block uses before it shadows it (AMB-LANG-86).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tessera_conformance.fuzz import scope as dtypes
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.expressions import BOOL, INT32, PRODUCTIONS, Expressions, indexed
from tessera_conformance.fuzz.operations import LAYERS, MOVEMENT, OPERATIONS
from tessera_conformance.fuzz.scope import Scope, Variable

LABELS = ("", '"done"', '"two\nlines"', '"a \\"b\\" \\\\ \\n\\t\\r"', '""', '"// no comment /*"')
DIRECTIVES = (
    ("tile", (("m", "2"), ("n", "2"), ("k", "2"))),
    ("tile", (("m", "1"), ("n", "2"))),
    ("pipeline", (("depth", "3"), ("double_buffer", "true"))),
    ("prefetch", (("scope", '"global"'), ("align", "32"))),
)
REDUCING = ("all_reduce",)
OTHER_COLLECTIVES = ("all_gather", "broadcast", "reduce_scatter", "all_to_all")
DEEPEST = 2
OPERATORS = (0, 1, 1, 2, 2, 3, 5)
"""Numbers of operators of a statement's expression, of which one is drawn."""
DIFFERENTIABLE = ("fp32", "fp64", "bf16", "fp16")


CALLS = (*OPERATIONS, *MOVEMENT, *LAYERS)

FEATURES = sorted(
    {"annotations", "mesh-collectives", "mesh-execution", "zero-sizes"}.union(
        each.feature for each in (*PRODUCTIONS, *CALLS) if each.feature
    )
)
"""The features that the generator makes programs of, where they are claimed."""


class Body:
    """Makes the blocks of one function."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.choose = scope.chooser
        self.exprs = Expressions(scope, CALLS)

    def expr(self, type_: t.Type, typed: bool = True) -> t.Expr:
        """An expression with a few operators."""
        self.exprs.budget = self.choose.pick(OPERATORS)
        return self.exprs.expr(type_, typed)

    def block(self, most: int, depth: int = 0) -> list[t.Stmt]:
        """Up to `most` statements, in a scope that its caller has opened."""
        statements: list[t.Stmt] = []
        if depth and self.choose.chance(8):
            statements += self._shadow()
        start = self.choose.place()
        while most and self.choose.below(4):
            statements += self.choose.pick(NESTING if depth < DEEPEST else SIMPLE)(self, depth)
            self.choose.part(start)
            start, most = self.choose.place(), most - 1
        return statements

    def inner(
        self, depth: int, *variables: Variable, most: int = 2, last: Callable[[], t.Stmt] | None = None
    ) -> list[t.Stmt]:
        """A block of its own, with these names in it; `last` makes the statement that it ends with, if any."""
        self.scope.frames.append({variable.name: variable for variable in variables})
        statements = self.block(most, depth + 1)
        if last is not None:
            statements.append(last())
        self.scope.frames.pop()
        return statements

    # Statements; each maker gives the statements that belong together

    def let(self, depth: int) -> list[t.Stmt]:
        """A new name with a value."""
        if self.scope.around.mesh is not None and not self.scope.in_kernel and self.choose.chance(4):
            return self.reduce(depth)
        type_ = self._callable_type() or self.scope.any_type()
        value = self.expr(type_)
        return [self._declared(type_, value)]

    def unknown(self, depth: int) -> list[t.Stmt]:
        """A new name for what an elementwise operator makes of a tensor with an unknown dimension."""
        dynamic = [each for each in self.scope.visible().values() if not each.type.is_static]
        if dynamic:
            type_ = self.choose.pick(dynamic).type
        else:
            type_ = t.Type(self.scope.dtype(), (*self._shape()[:1], self.scope.unknown()))
        operand = self.exprs.leaf(type_, False)
        if dtypes.kind_of(type_.dtype) == "bool":
            return [self._declared(self._forgotten(type_), operand)]
        scalar = self.exprs.leaf(t.Type(type_.dtype))
        options = (t.Binary("*", operand, scalar), t.Unary("-", operand), t.Binary("+", operand, operand), operand)
        return [self._declared(self._forgotten(type_), self.choose.pick(options))]

    def later(self, depth: int) -> list[t.Stmt]:
        """A name that gets its value after its declaration, in both branches of an `if` or right away."""
        type_ = self.scope.any_type()
        name, annotation = self.scope.fresh(), self.scope.spelled(type_)
        if self.choose.below(2):
            condition = self.expr(BOOL)
            first = self.inner(depth, most=1, last=lambda: t.Assign(name, (), self.expr(type_)))
            second = t.Assign(name, (), self.expr(type_))
            given: t.Stmt = t.If(condition, tuple(first), (second,))
        else:
            given = t.Assign(name, (), self.expr(type_))
        self.scope.declare(Variable(name, type_))
        return [t.Let(name, annotation), given]

    def assign(self, depth: int) -> list[t.Stmt]:
        """Another value for a name, from this block or one outside."""
        found = [each for each in self.scope.visible().values() if each.assignable]
        if not found:
            return self.let(depth)
        variable = self.choose.pick(found)
        return [t.Assign(variable.name, (), self.expr(variable.type))]

    def assign_slice(self, depth: int) -> list[t.Stmt]:
        """Other values for a part of a tensor."""
        found = [each for each in self.scope.visible().values() if each.assignable and _can_be_sliced(each.type)]
        if not found:
            type_ = t.Type(self.scope.dtype(), self._shape())
            base, items = indexed(self.exprs, type_)
            made = self._declared(base, self.expr(base))
            return [made, t.Assign(made.name, items, self.expr(type_))]
        variable = self.choose.pick(found)
        items, shape = self._part_of(variable.type.shape)
        return [t.Assign(variable.name, items, self.expr(t.Type(variable.type.dtype, shape)))]

    def branch(self, depth: int) -> list[t.Stmt]:
        """An `if`, perhaps with an `else`."""
        condition = self.expr(BOOL)
        otherwise = tuple(self.inner(depth)) if self.choose.below(2) else None
        return [t.If(condition, tuple(self.inner(depth)), otherwise)]

    def loop(self, depth: int) -> list[t.Stmt]:
        """A `for` that runs a few times or never, up or down."""
        name, step = self.scope.fresh(), self.choose.pick((None, 1, 2, -1, -2))
        start = self.choose.below(3)
        count = self.choose.below(4)
        stop = start + count * (step or 1)
        first, last = t.Literal(str(start)), _integer(stop)
        limit = start + 1 if step is not None and step < 0 else max(stop, start + 1)
        index = Variable(name, INT32, assignable=False, limit=limit if min(start, stop) >= 0 else None)
        body = tuple(self.inner(depth, index))
        return [t.For(name, first, last, None if step is None else _integer(step), body)]

    def repeat(self, depth: int) -> list[t.Stmt]:
        """A `while` over a counter of its own."""
        name = self.scope.fresh()
        counter, one = t.Var(name), t.Literal("1")
        limit = self.choose.below(4)
        self.scope.declare(Variable(name, INT32, assignable=False))
        body = (*self.inner(depth), t.Assign(name, (), t.Binary("+", counter, one)))
        condition = t.Binary("<", counter, t.Literal(str(limit)))
        return [t.Let(name, INT32, t.Literal("0")), t.While(condition, body)]

    def check(self, depth: int) -> list[t.Stmt]:
        """An assertion that holds."""
        integers = [each for each in self.scope.visible().values() if each.type == INT32]
        condition: t.Expr = t.Literal("true")
        if integers and self.choose.below(2):
            name = t.Var(self.choose.pick(integers).name)
            condition = t.Binary("==", name, name)
        elif self.choose.below(2):
            condition = t.Binary("<", t.Literal("1"), t.Literal("2"))
        return [t.Assert(condition, self.choose.pick(LABELS))]

    def barrier(self, depth: int) -> list[t.Stmt]:
        """A barrier, perhaps with a label."""
        return [t.Barrier(self.choose.pick(LABELS))]

    def call(self, depth: int) -> list[t.Stmt]:
        """A call whose value is not used."""
        self.exprs.budget = 2
        functions = self.scope.around.functions
        if functions and self.choose.below(2):
            return [self.exprs.call(self.choose.pick(functions), {})]
        product = t.Type(self.scope.dtype(), (self.choose.pick(self.scope.extents),) * 2)
        return [self.exprs.op("matmul", product, product)]

    def gradient(self, depth: int) -> list[t.Stmt]:
        """The derivative of an expression of a name, perhaps changed in a branch and a loop in between."""
        dtype = next((each for each in self.scope.dtypes if each in DIFFERENTIABLE), "fp32")
        side = self.choose.between(1, 3)
        type_ = t.Type(dtype, (side, side))
        x = self._declared(type_, t.Binary("+", self.exprs.leaf(type_), self.exprs.leaf(type_)))
        y = self._declared(type_, self._made_of(x, type_, 2))
        statements: list[t.Stmt] = [x, y]
        if self.choose.chance(4):
            again = t.Assign(y.name, (), t.Binary("*", t.Var(y.name), self._made_of(x, type_, 1)))
            statements.append(t.If(self.expr(BOOL), (again,)))
        if self.choose.chance(4):
            again = t.Assign(y.name, (), t.Binary("-", t.Var(y.name), self._made_of(x, type_, 1)))
            statements.append(t.For(self.scope.fresh(), t.Literal("0"), t.Literal("2"), None, (again,)))
        statements.append(self._declared(type_, t.Call("op.grad", (t.Var(y.name), t.Var(x.name)))))
        return statements

    def _made_of(self, x: t.Let, type_: t.Type, depth: int) -> t.Expr:
        """A differentiable expression of the name's type in which it occurs (AMB-LANG-107)."""
        if not depth:
            return t.Var(x.name)
        inner = self._made_of(x, type_, depth - 1)
        options: list[t.Expr] = [
            t.Binary(self.choose.pick("*+-"), inner, self.exprs.leaf(type_)),
            t.Binary("/", inner, t.Literal("4.0")),
            t.Binary("@", inner, self.exprs.leaf(type_)),
            t.Call("op.softmax", (inner,)),
            t.Unary("-", inner),
        ]
        if self.scope.around.has("elementary-functions"):
            options.append(t.Call(f"op.{self.choose.pick(('exp', 'tanh', 'sin'))}", (inner,)))
        if self.scope.around.has("tensor-ops"):
            options.append(t.Call("op.transpose", (inner,)))
        return self.choose.pick(options)

    def reduce(self, depth: int) -> list[t.Stmt]:
        """A collective, as a value or as a statement (AMB-LANG-13)."""
        mesh = self.scope.around.mesh
        if mesh is None or self.scope.in_kernel:
            return self.let(depth)
        first, *rest = self._shape()
        place = self.choose.below(len(mesh.axes))
        size, axis = mesh.extents[place], t.Attribute("axis", t.Var(mesh.axes[place]))
        names = REDUCING if not self.scope.around.has("mesh-collectives") else (*REDUCING, *OTHER_COLLECTIVES)
        name = self.choose.pick(names)
        kind = (t.Attribute("op", t.Word(self.choose.pick(('"sum"', '"max"', '"min"')))),) if "reduce" in name else ()
        given, made = {"reduce_scatter": (size, 1), "all_gather": (1, size), "all_to_all": (size, size)}.get(
            name, (1, 1)
        )
        operand, type_ = (t.Type(self.scope.dtypes[0], (first * times, *rest)) for times in (given, made))
        call = t.Call(f"dist.{name}", (self.exprs.leaf(operand, False),), (axis, *kind))
        self.scope.around.communicates = True
        return [call] if self.choose.chance(4) else [self._declared(type_, call)]

    def schedule(self, depth: int) -> list[t.Stmt]:
        """A product, and a directive about how it is to be computed (AMB-LANG-110)."""
        m, k, n = (self.choose.pick((2, 4)) for _ in range(3))
        dtype = self.scope.dtype()
        left, right = (self.exprs.leaf(t.Type(dtype, shape), False) for shape in ((m, k), (k, n)))
        product = self._declared(t.Type(dtype, (m, n)), t.Binary("@", left, right))
        name, attributes = self.choose.pick(DIRECTIVES)
        given = tuple(t.Attribute(key, t.Word(value)) for key, value in attributes)
        return [product, t.Call(f"schedule.{name}", (t.Var(product.name),), given)]

    def transform(self, depth: int) -> list[t.Stmt]:
        """A Fourier transform of a complex tensor, where there are complex dtypes (AMB-LANG-46)."""
        if not self.scope.around.has("extra-dtypes") or self.choose.below(2):
            return self.let(depth)
        type_ = t.Type(self.choose.pick(dtypes.COMPLEX), self._shape())
        return [self._declared(type_, t.Call("op.fft", (self.expr(type_, False),)))]

    # What they share

    def _declared(self, type_: t.Type, value: t.Expr) -> t.Let:
        name = self.scope.fresh()
        self.scope.declare(Variable(name, type_))
        return t.Let(name, self.scope.spelled(type_), value)

    def _shadow(self) -> list[t.Stmt]:
        """At the head of a block, a name from outside it, declared anew; its value does not use the outer one."""
        outer = [each for each in self.scope.visible().values() if each.assignable]
        if not outer:
            return []
        name = self.choose.pick(outer).name
        type_ = self.scope.any_type()
        self.scope.frames[-1][name] = None
        value = self.expr(type_)
        self.scope.declare(Variable(name, type_))
        return [t.Let(name, self.scope.spelled(type_), value)]

    def _callable_type(self) -> t.Type | None:
        """Sometimes the result type of a function that can be called."""
        results = [each for each in self.scope.around.results.values() if each.is_static]
        return self.choose.pick(results) if results and self.choose.chance(3) else None

    def _forgotten(self, type_: t.Type) -> t.Type:
        """The type with unknown dimensions in place of those that are not numbers (AMB-LANG-123)."""
        shape = tuple(each if isinstance(each, int) else self.scope.unknown() for each in type_.shape)
        return t.Type(type_.dtype, shape, type_.layout)

    def _shape(self) -> tuple[t.Extent, ...]:
        """One or two numbers above zero."""
        return tuple(self.choose.between(1, 3) for _ in range(self.choose.between(1, 2)))

    def _part_of(self, shape: Sequence[t.Extent]) -> tuple[tuple[t.Expr | t.Range, ...], tuple[t.Extent, ...]]:
        """Items that pick a part of a tensor, and the shape of the part."""
        items: list[t.Expr | t.Range] = []
        part: list[t.Extent] = []
        for extent in shape:
            assert isinstance(extent, int)
            if self.choose.below(2):
                items.append(self.exprs.index(extent))
                continue
            start = self.choose.below(extent)
            stop = self.choose.between(start + 1, extent)
            items.append(t.Range(t.Literal(str(start)), t.Literal(str(stop))))
            part.append(stop - start)
        return tuple(items), tuple(part)


def _can_be_sliced(type_: t.Type) -> bool:
    plain = bool(type_.shape) and type_.is_static and type_.layout == "row_major"
    return plain and 0 not in type_.shape and type_.dtype not in dtypes.COMPLEX


def _integer(value: int) -> t.Expr:
    return t.Unary("-", t.Literal(str(-value))) if value < 0 else t.Literal(str(value))


Maker = Callable[[Body, int], list[t.Stmt]]

SIMPLE: tuple[Maker, ...] = (
    *(Body.let,) * 6,
    *(Body.assign,) * 2,
    *(Body.assign_slice,) * 2,
    Body.later,
    Body.check,
    Body.barrier,
    Body.call,
    Body.unknown,
    Body.gradient,
    Body.reduce,
    Body.schedule,
    Body.transform,
)
NESTING: tuple[Maker, ...] = (*SIMPLE, *(Body.branch,) * 2, *(Body.loop,) * 2, Body.repeat)
"""Statements of a block: in the innermost ones none that has a block itself."""
