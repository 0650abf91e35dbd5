"""Generated modules: statements, functions and kernels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.expressions import (
    BOOL,
    INT32,
    PRODUCTIONS,
    Expressions,
    Surroundings,
    Variable,
    indexed,
    input_for,
    is_row_major,
    kind_of,
    literal,
)
from tessera_conformance.fuzz.tree import Chooser, Names, Style, names_of, odd, render
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import COMPLEX

# Statements and blocks, legal by construction: names are assigned before they are used, loops end, assertions hold.
#
# Programs avoid what the interpretations leave open: a `return` in a loop (AMB-LANG-93), statements after one,
# assigning a loop's variable, and a name that an inner block uses before it shadows it (AMB-LANG-86).


LABELS = ("", '"done"', '"two\nlines"', '"a \\"b\\" \\\\ \\n\\t\\r"', '""', '"// no comment /*"')
DIRECTIVES = (
    ("tile", (("m", "2"), ("n", "2"), ("k", "2"))),
    ("tile", (("m", "1"), ("n", "2"))),
    ("pipeline", (("depth", "3"), ("double_buffer", "true"))),
    ("prefetch", (("scope", '"global"'), ("align", "32"))),
)
COLLECTIVES = {
    "all_reduce": (False, False),
    "all_gather": (False, True),
    "broadcast": (False, False),
    "reduce_scatter": (True, False),
    "all_to_all": (True, True),
}
"""True where the operand, and where the result, has a share for each rank; the core has all_reduce alone."""
DEEPEST = 2
OPERATORS = (0, 1, 1, 2, 2, 3, 5)
"""Numbers of operators in a statement's expression; one of them is drawn."""
DIFFERENTIABLE = ("fp32", "fp64", "bf16", "fp16")


FEATURES = sorted(
    {"annotations", "mesh-collectives", "mesh-execution", "zero-sizes"}.union(
        production.feature for production in PRODUCTIONS if production.feature
    )
)
"""The features for which the generator makes programs, if they are claimed."""


class Body(Expressions):
    """Makes the blocks of one function."""

    def value(self, type_: t.Type, typed: bool = True) -> t.Expr:
        """Return an expression with a few operators."""
        self.budget = self.choose.pick(OPERATORS)
        return self.expr(type_, typed)

    def block(self, most: int, depth: int = 0) -> list[t.Stmt]:
        """Return up to `most` statements, in a scope that its caller has opened."""
        statements: list[t.Stmt] = []
        if depth and self.choose.chance(8):
            statements += self._shadow()
        while most and self.choose.below(4):
            statements += self.choose.pick(NESTING if depth < DEEPEST else SIMPLE)(self, depth)
            most -= 1
        return statements

    def inner(
        self, depth: int, *variables: Variable, most: int = 2, last: Callable[[], t.Stmt] | None = None
    ) -> list[t.Stmt]:
        """Return a nested block with these variables; `last` makes its last statement, if given."""
        self.frames.append({variable.name: variable for variable in variables})
        statements = self.block(most, depth + 1)
        if last is not None:
            statements.append(last())
        self.frames.pop()
        return statements

    # Statements; each maker returns the statements that belong together

    def let(self, depth: int) -> list[t.Stmt]:
        """Declare a new name with a value."""
        if self.around.mesh is not None and not self.in_kernel and self.choose.chance(4):
            return self.reduce(depth)
        results = [result for result in self.around.results.values() if result.is_static]
        type_ = self.choose.pick(results) if results and self.choose.chance(3) else self.any_type()
        return [self._declared(type_, self.value(type_))]

    def let_unknown(self, depth: int) -> list[t.Stmt]:
        """Declare a name for the result of an elementwise operator on a tensor with an unknown dimension."""
        dynamic = [variable for variable in self.visible().values() if not variable.type.is_static]
        if dynamic:
            type_ = self.choose.pick(dynamic).type
        else:
            type_ = t.Type(self.dtype(), (*self._shape()[:1], self.unknown()))
        operand = self.leaf(type_, False)
        if kind_of(type_.dtype) == "bool":
            return [self._declared(self._forgotten(type_), operand)]
        scalar = self.leaf(t.Type(type_.dtype))
        options = (t.Binary("*", operand, scalar), t.Unary("-", operand), t.Binary("+", operand, operand), operand)
        return [self._declared(self._forgotten(type_), self.choose.pick(options))]

    def later(self, depth: int) -> list[t.Stmt]:
        """Declare a name and assign it later, in both branches of an `if` or in the next statement."""
        type_ = self.any_type()
        name, annotation = self.fresh(), self.spelled(type_)
        if self.choose.below(2):
            condition = self.value(BOOL)
            first = self.inner(depth, most=1, last=lambda: t.Assign(name, (), self.value(type_)))
            second = t.Assign(name, (), self.value(type_))
            statement: t.Stmt = t.If(condition, first, [second])
        else:
            statement = t.Assign(name, (), self.value(type_))
        self.declare(Variable(name, type_))
        return [t.Let(name, annotation), statement]

    def assign(self, depth: int) -> list[t.Stmt]:
        """Assign another value to a name of this block or an outer one."""
        variables = self._assignable()
        if not variables:
            return self.let(depth)
        variable = self.choose.pick(variables)
        return [t.Assign(variable.name, (), self.value(variable.type))]

    def assign_slice(self, depth: int) -> list[t.Stmt]:
        """Assign other values to a part of a tensor."""
        variables = [
            variable
            for variable in self._assignable()
            if is_row_major(variable.type) and variable.type.is_static and variable.type.dtype not in COMPLEX
        ]
        if not variables:
            type_ = t.Type(self.dtype(), self._shape())
            base, items = indexed(self, type_)
            declaration = self._declared(base, self.value(base))
            return [declaration, t.Assign(declaration.name, items, self.value(type_))]
        variable = self.choose.pick(variables)
        items, shape = self._part_of(variable.type.shape)
        return [t.Assign(variable.name, items, self.value(t.Type(variable.type.dtype, shape)))]

    def branch(self, depth: int) -> list[t.Stmt]:
        """Return an `if`, perhaps with an `else`."""
        condition = self.value(BOOL)
        otherwise = self.inner(depth) if self.choose.below(2) else None
        return [t.If(condition, self.inner(depth), otherwise)]

    def loop(self, depth: int) -> list[t.Stmt]:
        """Return a `for` that runs a few times or never, up or down."""
        name, step = self.fresh(), self.choose.pick((None, 1, 2, -1, -2))
        start = self.choose.below(3)
        count = self.choose.below(4)
        stop = start + count * (step or 1)
        first, last = t.Literal(str(start)), t.integer(stop)
        limit = start + 1 if step is not None and step < 0 else max(stop, start + 1)
        index = Variable(name, INT32, assignable=False, limit=limit if min(start, stop) >= 0 else None)
        body = self.inner(depth, index)
        return [t.For(name, first, last, None if step is None else t.integer(step), body)]

    def repeat(self, depth: int) -> list[t.Stmt]:
        """Return a `while` over a counter of its own."""
        name = self.fresh()
        counter, one = t.Var(name), t.Literal("1")
        limit = self.choose.below(4)
        self.declare(Variable(name, INT32, assignable=False))
        body = [*self.inner(depth), t.Assign(name, (), t.Binary("+", counter, one))]
        condition = t.Binary("<", counter, t.Literal(str(limit)))
        return [t.Let(name, INT32, t.Literal("0")), t.While(condition, body)]

    def check(self, depth: int) -> list[t.Stmt]:
        """Return an assertion that holds."""
        integers = self.of_type(INT32)
        condition: t.Expr = t.Literal("true")
        if integers and self.choose.below(2):
            name = t.Var(self.choose.pick(integers).name)
            condition = t.Binary("==", name, name)
        elif self.choose.below(2):
            condition = t.Binary("<", t.Literal("1"), t.Literal("2"))
        return [t.Assert(condition, self.choose.pick(LABELS))]

    def barrier(self, depth: int) -> list[t.Stmt]:
        """Return a barrier, perhaps with a label."""
        return [t.Raw(f"barrier({self.choose.pick(LABELS)});")]

    def call_alone(self, depth: int) -> list[t.Stmt]:
        """Call a function or operation without using its value."""
        self.budget = 2
        functions = self.around.functions
        if functions and self.choose.below(2):
            return [self.call(self.choose.pick(functions), {})]
        square = t.Type(self.dtype(), (self.choose.pick(self.extents),) * 2)
        return [self.op("matmul", square, square)]

    def gradient(self, depth: int) -> list[t.Stmt]:
        """Compute the derivative of an expression of a name, sometimes changed in a branch and a loop in between."""
        dtype = next((candidate for candidate in self.dtypes if candidate in DIFFERENTIABLE), "fp32")
        side = self.choose.between(1, 3)
        type_ = t.Type(dtype, (side, side))
        x = self._declared(type_, t.Binary("+", self.leaf(type_), self.leaf(type_)))
        y = self._declared(type_, self._made_of(x, type_, 2))
        statements: list[t.Stmt] = [x, y]
        if self.choose.chance(4):
            again = t.Assign(y.name, (), t.Binary("*", t.Var(y.name), self._made_of(x, type_, 1)))
            statements.append(t.If(self.value(BOOL), [again]))
        if self.choose.chance(4):
            again = t.Assign(y.name, (), t.Binary("-", t.Var(y.name), self._made_of(x, type_, 1)))
            statements.append(t.For(self.fresh(), t.Literal("0"), t.Literal("2"), None, [again]))
        statements.append(self._declared(type_, t.Call("op.grad", (t.Var(y.name), t.Var(x.name)))))
        return statements

    def _made_of(self, x: t.Let, type_: t.Type, depth: int) -> t.Expr:
        """Return a differentiable expression of the name's type that contains the name (AMB-LANG-107)."""
        if not depth:
            return t.Var(x.name)
        inner = self._made_of(x, type_, depth - 1)
        options: list[t.Expr] = [
            t.Binary(self.choose.pick("*+-"), inner, self.leaf(type_)),
            t.Binary("/", inner, t.Literal("4.0")),
            t.Binary("@", inner, self.leaf(type_)),
            t.Call("op.softmax", (inner,)),
            t.Unary("-", inner),
        ]
        if self.around.has("elementary-functions"):
            options.append(t.Call(f"op.{self.choose.pick(('exp', 'tanh', 'sin'))}", (inner,)))
        if self.around.has("tensor-ops"):
            options.append(t.Call("op.transpose", (inner,)))
        return self.choose.pick(options)

    def reduce(self, depth: int) -> list[t.Stmt]:
        """Call a collective, as a value or as a statement (AMB-LANG-13)."""
        mesh = self.around.mesh
        if mesh is None or self.in_kernel:
            return self.let(depth)
        first, *rest = self._shape()
        place = self.choose.below(len(mesh.axes))
        size, axis = mesh.extents[place], t.Attribute("axis", t.Var(mesh.axes[place]))
        name = self.choose.pick(list(COLLECTIVES) if self.around.has("mesh-collectives") else ["all_reduce"])
        attributes = [axis]
        if "reduce" in name:
            attributes.append(t.Attribute("op", t.Literal(self.choose.pick(('"sum"', '"max"', '"min"')))))
        factors = (size if has_shares else 1 for has_shares in COLLECTIVES[name])
        operand, type_ = (t.Type(self.dtypes[0], (first * factor, *rest)) for factor in factors)
        call = t.Call(f"dist.{name}", (self.leaf(operand, False),), tuple(attributes))
        self.around.communicates = True
        return [call] if self.choose.chance(4) else [self._declared(type_, call)]

    def schedule(self, depth: int) -> list[t.Stmt]:
        """Compute a product with a directive about its computation (AMB-LANG-110)."""
        m, k, n = (self.choose.pick((2, 4)) for _ in range(3))
        dtype = self.dtype()
        left, right = (self.leaf(t.Type(dtype, shape), False) for shape in ((m, k), (k, n)))
        product = self._declared(t.Type(dtype, (m, n)), t.Binary("@", left, right))
        name, attributes = self.choose.pick(DIRECTIVES)
        settings = tuple(t.Attribute(key, t.Literal(value)) for key, value in attributes)
        return [product, t.Call(f"schedule.{name}", (t.Var(product.name),), settings)]

    def transform(self, depth: int) -> list[t.Stmt]:
        """Compute a Fourier transform of a complex tensor, if there are complex dtypes (AMB-LANG-46)."""
        if not self.around.has("extra-dtypes") or self.choose.below(2):
            return self.let(depth)
        type_ = t.Type(self.choose.pick(list(COMPLEX)), self._shape())
        return [self._declared(type_, t.Call("op.fft", (self.value(type_, False),)))]

    # Helpers of the statements

    def _assignable(self) -> list[Variable]:
        return [variable for variable in self.visible().values() if variable.assignable]

    def _declared(self, type_: t.Type, value: t.Expr, name: str = "") -> t.Let:
        name = name or self.fresh()
        self.declare(Variable(name, type_))
        return t.Let(name, self.spelled(type_), value)

    def _shadow(self) -> list[t.Stmt]:
        """Declare an outer name anew at the head of a block; its value does not use the outer one."""
        outer = self._assignable()
        if not outer:
            return []
        name = self.choose.pick(outer).name
        type_ = self.any_type()
        self.frames[-1][name] = None
        return [self._declared(type_, self.value(type_), name)]

    def _forgotten(self, type_: t.Type) -> t.Type:
        """Return the type with unknown dimensions instead of named ones (AMB-LANG-123)."""
        shape = tuple(size if isinstance(size, int) else self.unknown() for size in type_.shape)
        return t.Type(type_.dtype, shape, type_.layout)

    def _shape(self) -> tuple[t.Extent, ...]:
        """Return one or two positive extents."""
        return tuple(self.choose.between(1, 3) for _ in range(self.choose.between(1, 2)))

    def _part_of(self, shape: Sequence[t.Extent]) -> tuple[tuple[t.Expr | t.Range, ...], tuple[t.Extent, ...]]:
        """Return items that select a part of a tensor, and the shape of the part."""
        items: list[t.Expr | t.Range] = []
        part: list[t.Extent] = []
        for extent in shape:
            assert isinstance(extent, int)
            if self.choose.below(2):
                items.append(self.index(extent))
                continue
            start = self.choose.below(extent)
            stop = self.choose.between(start + 1, extent)
            items.append(t.Range(t.Literal(str(start)), t.Literal(str(stop))))
            part.append(stop - start)
        return tuple(items), tuple(part)


Maker = Callable[[Body, int], list[t.Stmt]]

SIMPLE: tuple[Maker, ...] = (
    *(Body.let,) * 6,
    *(Body.assign,) * 2,
    *(Body.assign_slice,) * 2,
    Body.later,
    Body.check,
    Body.barrier,
    Body.call_alone,
    Body.let_unknown,
    Body.gradient,
    Body.reduce,
    Body.schedule,
    Body.transform,
)
NESTING: tuple[Maker, ...] = (*SIMPLE, *(Body.branch,) * 2, *(Body.loop,) * 2, Body.repeat)
"""The statements of outer blocks; the innermost blocks have those of `SIMPLE`, without blocks of their own."""

# Whole programs, legal by construction, with their declarations, inputs and results.
#
# A program is legal by the grammar of section 2.3 and by what the interpretations assert. It may still end in an error
# of execution, such as an index out of range or a division of integers by zero.


OTHER_TYPES = (
    "memref<16x8xbf16>[addrspace=shared]",
    "memref<4xfp32>",
    "fragment<16,16,16,bf16>",
    "fragment<16,16,16,bf16; layout=row_major>",
    "mesh<axes=[dp],shape=[2]>",
    "fn(int32,tensor<2xfp32>)->fp32",
    "fn()->bool",
)
"""Types that no value of these programs has; an alias may name them."""
MOST_FUNCTIONS = 3
MOST_BEFORE = 3
"""The most declarations before the functions of a module."""


@dataclass(frozen=True)
class Output:
    """Facts about a returned value; the shape is None if it depends on the inputs."""

    dtype: str
    shape: tuple[int, ...] | None


@dataclass(frozen=True)
class Subject:
    """A program as text, and the function to execute with its inputs; without a function nothing is executed.

    A program that communicates is executed on `ranks` ranks, each with the same inputs.
    """

    source: str
    function: str = ""
    inputs: Mapping[str, Tensor] = field(default_factory=dict)
    ranks: int = 0


@dataclass(frozen=True, kw_only=True)
class GeneratedProgram(Subject):
    """A legal program with its tree and its outputs.

    If it communicates, and the implementation does not claim to execute on a mesh, it has no function.
    """

    tree: t.Program
    outputs: tuple[Output, ...] = ()

    @property
    def declared(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The modules with the kinds and names of their declarations, in source order."""
        return [
            (
                module.name,
                [(named.keyword, named.name) for named in module.declarations if not isinstance(named, t.Raw)],
            )
            for module in self.tree
        ]


def generate(chooser: Chooser, features: Collection[str] = ()) -> GeneratedProgram:
    """Return a legal program of the core and the given features."""
    spelling = chooser.below(6)
    module_names = Names(chooser)
    maker = _ModuleMaker(chooser, features)
    modules = [maker.module(module_names.fresh(t.MODULES))]
    ranks = prod(maker.mesh.extents) if maker.mesh and maker.communicates else 0
    if chooser.chance(8):
        modules.append(_ModuleMaker(chooser, features).module(module_names.fresh(t.MODULES)))
    program = tuple(modules)
    text = render(program, Style(chooser=chooser, respelled=spelling > 0))
    source = odd(text, chooser) if spelling == 5 else text
    main = maker.main
    if main is None or (ranks and not maker.has("mesh-execution")):
        return GeneratedProgram(source=source, tree=program)
    functions = [function for module in modules for function in module.declarations if isinstance(function, t.Function)]
    alone = [function.name for function in functions].count(main.name) == 1
    function = main.name if alone else f"{modules[0].name}.{main.name}"
    extents = (extent for parameter in main.parameters for extent in parameter.type.shape if isinstance(extent, str))
    sizes = {extent: chooser.between(1, 3) for extent in dict.fromkeys(extents)}
    inputs = {
        parameter.name: input_for(parameter.type.dtype, _shape(parameter.type, sizes) or (), chooser)
        for parameter in main.parameters
    }
    outputs = tuple(Output(type_.dtype, _shape(type_, sizes)) for type_ in maker.main_results)
    return GeneratedProgram(source, function, inputs, ranks, tree=program, outputs=outputs)


def _shape(type_: t.Type, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    """Return a type's shape with numbers for its dimension names; None if some are not in `sizes`."""
    shape = [extent if isinstance(extent, int) else sizes.get(extent) for extent in type_.shape]
    return None if None in shape else tuple(extent for extent in shape if extent is not None)


class _ModuleMaker(Surroundings):
    """Makes one module; `main` is its last func, or its kernel, and `main_results` the types of its results."""

    def __init__(self, chooser: Chooser, features: Collection[str]) -> None:
        super().__init__(chooser, features)
        self.main: t.Function | None = None
        self.main_results: tuple[t.Type, ...] = ()
        self._profile = chooser.pick(("", "", "", "", "strict", "deterministic"))

    def module(self, name: str) -> t.Module:
        """Return aliases, meshes and constants, then functions, each before its callers (AMB-LANG-50, -97)."""
        before = self._before()
        functions = self.functions
        functions.append(self.func())
        while len(functions) < MOST_FUNCTIONS and self.choose.chance(3):
            functions.append(self.func())
        self.main = functions[-1]
        if self.choose.chance(8):
            functions = [*functions, self.kernel()]
            if self.choose.below(2):  # execute it instead; its tensor parameters are its results (AMB-LANG-150)
                self.main = functions[-1]
                self.main_results = tuple(parameter.type for parameter in self.main.parameters if parameter.type.shape)
        return t.Module(name, [*before, *functions])

    def _before(self) -> list[t.Decl]:
        declarations: list[t.Decl] = []
        if self.choose.chance(10):
            axes = tuple(self.names.fresh(t.AXES) for _ in range(self.choose.between(1, 2)))
            extents = tuple(self.choose.pick((2, 3, 1)) for _ in axes)
            self.mesh = t.Mesh(self.names.fresh(t.MESHES), axes, extents)
            declarations.append(self.mesh)
        while len(declarations) < MOST_BEFORE and self.choose.chance(3):
            declarations.append(self._constant() if self.choose.below(2) else self._alias())
        return declarations

    def _constant(self) -> t.Let:
        """Return a scalar made of literals and earlier constants, or a tensor of zeros."""
        scope = Expressions(self)
        dtype = scope.dtype()
        name = self.names.fresh(t.VALUES)
        if self.choose.chance(4):
            type_ = t.Type(dtype, (2, self.choose.between(1, 3)))
            value: t.Expr = type_
        else:
            type_ = t.Type(dtype)
            value = t.Literal(literal(dtype, self.choose))
            before = scope.of_type(type_)
            if before and self.choose.below(2):
                value = t.Binary(self.choose.pick("+*"), t.Var(self.choose.pick(before).name), value)
        self.constants[name] = Variable(name, type_, assignable=False)
        return t.Let(name, scope.spelled(type_), value)

    def _alias(self) -> t.Alias:
        name = self.names.fresh(t.TYPES)
        if self.choose.chance(5):
            return t.Alias(name, self.choose.pick(OTHER_TYPES))
        type_ = Expressions(self).type()
        if not type_.is_static:
            type_ = t.Type(type_.dtype)
        self.aliases.setdefault(type_, name)
        return t.Alias(name, type_)

    # Functions

    def func(self) -> t.Function:
        """Return a func with a result of an annotated or inferred type, several results, or none."""
        name = self.names.fresh(t.FUNCTIONS)
        body = Body(self)
        statements: list[t.Stmt] = []
        if self._profile and self.has("annotations") and self.choose.chance(4):  # AMB-LANG-51
            statements.append(t.Raw(f'numerics.profile("{self._profile}");'))
        statements += body.block(3)
        kind = self.choose.pick(("annotated", "annotated", "several", "annotated", "inferred", "nothing"))
        count = {"several": self.choose.between(2, 3), "nothing": 0}.get(kind, 1)
        self.main_results = tuple(self._result_type(body) for _ in range(count))
        statements += self._returns(body, kind == "annotated")
        result = body.spelled(self._annotation(body)) if kind == "annotated" else None
        parameters = self._with_defaults(body)
        if count == 1:
            self.results[name] = self.main_results[0] if result is None else result
        return t.Function(name, parameters, result, self._attributes(), statements)

    def kernel(self) -> t.Function:
        """Return a kernel, which stores its results in its parameters (AMB-LANG-98)."""
        name = self.names.fresh(t.FUNCTIONS)
        body = Body(self, in_kernel=True)
        type_ = t.Type(body.dtype(), (self.choose.between(1, 3), 2))
        output = body.parameter(type_)
        assert output is not None
        statements = [*body.block(2), t.Assign(output.name, (), body.value(type_))]
        parameters = tuple(t.Let(parameter.name, parameter.type) for parameter in body.parameters.values())
        return t.Function(name, parameters, None, self._attributes(), statements, "kernel")

    def _result_type(self, scope: Expressions) -> t.Type:
        """Return the type of a variable, or any type; a named dimension needs a parameter that has it."""
        variables = [variable.type for variable in scope.visible().values()]
        if variables and self.choose.below(2):
            return self.choose.pick(variables)
        return scope.any_type()

    def _annotation(self, scope: Expressions) -> t.Type:
        """Return the type of the result, sometimes with an unknown dimension instead (AMB-LANG-123)."""
        (type_,) = self.main_results
        if not type_.shape or not self.choose.chance(12):
            return type_
        forgotten = tuple(scope.unknown() if self.choose.below(2) else extent for extent in type_.shape)
        return t.Type(type_.dtype, forgotten, type_.layout)

    def _returns(self, body: Body, typed: bool) -> list[t.Stmt]:
        """Return the end of a body: a return, sometimes one in a branch before it, or one in each of two branches."""

        def last() -> t.Stmt:
            return t.Return(tuple(body.value(type_, typed) for type_ in self.main_results))

        if not self.main_results:
            return [t.Return(())] if self.choose.chance(3) else []
        if not self.choose.chance(6):
            return [last()]
        condition = body.value(BOOL)
        first = body.inner(1, most=1, last=last)
        if self.choose.below(2):
            return [t.If(condition, first), last()]
        return [t.If(condition, first, body.inner(1, most=1, last=last))]

    def _with_defaults(self, scope: Expressions) -> tuple[t.Let, ...]:
        """Return the parameters; the last scalar ones may have defaults (AMB-LANG-74)."""
        parameters = [t.Let(parameter.name, parameter.type) for parameter in scope.parameters.values()]
        for place in reversed(range(len(parameters))):
            type_ = parameters[place].type
            if type_.shape or kind_of(type_.dtype) == "complex" or not self.choose.chance(4):
                break
            default = t.Literal(literal(type_.dtype, self.choose))
            parameters[place] = t.Let(parameters[place].name, type_, default)
        return tuple(parameters)

    def _attributes(self) -> tuple[t.Attribute, ...]:
        if not self._profile or self.choose.chance(3):
            return ()
        return (t.Attribute("numerics_profile", t.Literal(f'"{self._profile}"')),)


# Other texts of the same meaning: no answer may depend on names, spaces, parentheses, order or spelling.


VARIANTS = (
    "other names",
    "other spaces and comments",
    "more parentheses",
    "other order",
    "other spelling",
    "all of it",
)


def vary(program: GeneratedProgram, chooser: Chooser) -> tuple[str, Subject]:
    """Return the change that makes another text of the same meaning, and the program with its new text and names."""
    what = chooser.pick(VARIANTS)
    changes = VARIANTS if what == "all of it" else (what,)
    tree, names = program.tree, {}
    if "other order" in changes:
        tree = tuple(_reordered(module, chooser) for module in tree)
    if "other names" in changes:
        own = names_of(tree)
        numbers, stem = chooser.shuffled(range(len(own))), chooser.pick(("r", "q_", "V", "e"))  # AMB-LANG-121
        names = {name: f"{stem}{number}" for name, number in zip(own, numbers, strict=True)}
    spelling = "other spelling" in changes
    style = Style(names, chooser, "more parentheses" in changes, respelled=spelling, keywords=spelling)
    text = render(tree, style)
    source = odd(text, chooser) if "other spaces and comments" in changes else text
    function = ".".join(names.get(part, part) for part in program.function.split("."))
    inputs = {names.get(name, name): value for name, value in program.inputs.items()}
    return what, Subject(source, function, inputs, program.ranks)


def _reordered(module: t.Module, chooser: Chooser) -> t.Module:
    """Return a module with its functions in another order; aliases, constants and meshes stay before them."""
    functions = [declaration for declaration in module.declarations if isinstance(declaration, t.Function)]
    before = [declaration for declaration in module.declarations if not isinstance(declaration, t.Function)]
    return t.Module(module.name, [*before, *chooser.shuffled(functions[1:] + functions[:1])])
