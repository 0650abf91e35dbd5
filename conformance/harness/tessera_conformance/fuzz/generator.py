"""Whole programs, legal by construction, and other texts of the same meaning."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod

from tessera_conformance.fuzz import choices as words
from tessera_conformance.fuzz import scope as dtypes
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.choices import Chooser, Names, renaming
from tessera_conformance.fuzz.expressions import BOOL
from tessera_conformance.fuzz.rendering import Style, names_of, odd, plain, render
from tessera_conformance.fuzz.scope import Scope, Surroundings, Variable
from tessera_conformance.fuzz.statements import Body
from tessera_conformance.tensors import Tensor

# Whole programs, legal by construction, with what is known of them: what they declare, take and give.
#
# Legal means by the grammar of section 2.3 and by the interpretations as far as they are asserted. A program may
# still end in an error of execution, such as an index out of range or a division of integers by zero.


OTHER_TYPES = (
    "memref<16x8xbf16>[addrspace=shared]",
    "memref<4xfp32>",
    "fragment<16,16,16,bf16>",
    "fragment<16,16,16,bf16; layout=row_major>",
    "mesh<axes=[dp],shape=[2]>",
    "fn(int32,tensor<2xfp32>)->fp32",
    "fn()->bool",
)
"""Types that no value of these programs has; an alias may name them all the same."""
MOST_FUNCTIONS = 3
MOST_BEFORE = 3
"""Declarations before the functions of a module."""
KINDS = {t.Alias: "type", t.Let: "const", t.Mesh: "mesh"}


@dataclass(frozen=True)
class Output:
    """Facts about a returned value; the shape is None where it depends on the inputs."""

    dtype: str
    shape: tuple[int, ...] | None


@dataclass(frozen=True)
class GeneratedProgram:
    """A legal program as text and tree, the function to execute, its inputs, and what it returns.

    A program that communicates needs `ranks` to be executed on; where the implementation does not claim to execute on
    a mesh, `function` is empty and nothing is to be executed.
    """

    tree: t.Program
    source: str
    function: str
    inputs: Mapping[str, Tensor]
    outputs: tuple[Output, ...]
    ranks: int = 0

    @property
    def declared(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The modules with the kinds and names of their declarations, in source order."""
        return declarations_of(self.tree)


def generate(chooser: Chooser, features: Collection[str] = ()) -> GeneratedProgram:
    """A legal program of the core and of the features given."""
    spelling = chooser.below(6)
    module_names = Names(chooser)
    around = Surroundings(frozenset(features), Names(chooser))
    maker = _ModuleMaker(chooser, around)
    modules = [maker.module(module_names.fresh(words.MODULES))]
    ranks = prod(around.mesh.extents) if around.mesh and around.communicates else 0
    if chooser.chance(8):
        other = _ModuleMaker(chooser, Surroundings(frozenset(features), Names(chooser)))
        modules.append(other.module(module_names.fresh(words.MODULES)))
    program = t.Program(tuple(modules))
    text = render(program, Style(chooser=chooser, respelled=spelling > 0))
    source = odd(text, chooser) if spelling == 5 else plain(text)
    main = maker.main
    if main is None or (ranks and not around.has("mesh-execution")):
        return GeneratedProgram(program, source, "", {}, ())
    names = [each.name for module in modules for each in module.declarations if isinstance(each, t.Function)]
    function = main.name if names.count(main.name) == 1 else f"{modules[0].name}.{main.name}"
    sizes = {each: chooser.between(1, 3) for each in _open_extents(main)}
    inputs = {each.name: dtypes.input_for(dtypes.concrete(each.type, sizes), chooser) for each in main.parameters}
    outputs = tuple(_output(type_, sizes) for type_ in maker.results)
    return GeneratedProgram(program, source, function, inputs, outputs, ranks)


def declarations_of(program: t.Program) -> list[tuple[str, list[tuple[str, str]]]]:
    """The modules of a program with the kinds and names of their declarations, in source order."""
    return [
        (module.name, [(kind_of(each), each.name) for each in module.declarations if not isinstance(each, t.Raw)])
        for module in program.modules
    ]


def kind_of(declaration: t.Decl) -> str:
    """Return the protocol's word for a declaration."""
    return declaration.keyword if isinstance(declaration, t.Function) else KINDS[type(declaration)]


def _open_extents(function: t.Function) -> list[str]:
    extents = [extent for parameter in function.parameters for extent in parameter.type.shape]
    return list(dict.fromkeys(extent for extent in extents if isinstance(extent, str)))


def _output(type_: t.Type, sizes: Mapping[str, int]) -> Output:
    known = all(isinstance(extent, int) or extent in sizes for extent in type_.shape)
    shape = dtypes.concrete(type_, sizes).shape if known else None
    return Output(type_.dtype, None if shape is None else tuple(int(extent) for extent in shape))


class _ModuleMaker:
    """Makes one module; `main` is its last func, or its kernel, and `results` the types that this returns."""

    def __init__(self, chooser: Chooser, around: Surroundings) -> None:
        self.choose = chooser
        self.around = around
        self.main: t.Function | None = None
        self.results: tuple[t.Type, ...] = ()
        self._profile = chooser.pick(("", "", "", "", "strict", "deterministic"))

    def module(self, name: str) -> t.Module:
        """Aliases, meshes and constants first, then functions in any order (AMB-LANG-50, AMB-LANG-97)."""
        before = self._before()
        functions = self.around.functions
        another = True
        while another:
            start = self.choose.place()
            functions.append(self.func())
            another = len(functions) < MOST_FUNCTIONS and self.choose.chance(3)
            self.choose.part(start)
        self.main = functions[-1]
        if self.choose.chance(8):
            functions = [*functions, self.kernel()]
            self._perhaps_run_the_kernel(functions[-1])
        return t.Module(name, (*before, *self.choose.shuffled(functions)))

    def _before(self) -> list[t.Decl]:
        declarations: list[t.Decl] = []
        if self.choose.chance(10):
            axes = tuple(self.around.names.fresh(words.AXES) for _ in range(self.choose.between(1, 2)))
            extents = tuple(self.choose.pick((2, 3, 1)) for _ in axes)
            self.around.mesh = t.Mesh(self.around.names.fresh(words.MESHES), axes, extents)
            declarations.append(self.around.mesh)
        start = self.choose.place()
        while len(declarations) < MOST_BEFORE and self.choose.chance(3):
            declarations.append(self._constant() if self.choose.below(2) else self._alias())
            self.choose.part(start)
            start = self.choose.place()
        return declarations

    def _constant(self) -> t.Let:
        """A scalar made of literals and the constants before it, or a tensor of zeros."""
        scope = Scope(self.around, self.choose)
        dtype = scope.dtype()
        name = self.around.names.fresh(words.VALUES)
        if self.choose.chance(4):
            type_ = t.Type(dtype, (2, self.choose.between(1, 3)))
            value: t.Expr = t.TensorValue(type_)
        else:
            type_ = t.Type(dtype)
            value = t.Literal(dtypes.literal(dtype, self.choose))
            before = scope.of_type(type_)
            if before and self.choose.below(2):
                value = t.Binary(self.choose.pick("+*"), t.Var(self.choose.pick(before).name), value)
        self.around.constants[name] = Variable(name, type_, assignable=False)
        return t.Let(name, scope.spelled(type_), value)

    def _alias(self) -> t.Alias:
        name = self.around.names.fresh(words.TYPES)
        if self.choose.chance(5):
            return t.Alias(name, t.Raw((self.choose.pick(OTHER_TYPES),)))
        type_ = Scope(self.around, self.choose).type()
        if not type_.is_static:
            type_ = t.Type(type_.dtype)
        self.around.aliases.setdefault(type_, name)
        return t.Alias(name, type_)

    # Functions

    def func(self) -> t.Function:
        """A func that returns a value of an annotated or inferred type, several values, or nothing."""
        name = self.around.names.fresh(words.FUNCTIONS)
        scope = Scope(self.around, self.choose)
        body = Body(scope)
        statements = [*self._profile_statement(), *body.block(3)]
        kind = self.choose.pick(("annotated", "annotated", "several", "annotated", "inferred", "nothing"))
        count = {"several": self.choose.between(2, 3), "nothing": 0}.get(kind, 1)
        self.results = tuple(self._result_type(scope) for _ in range(count))
        statements += self._returns(body, kind == "annotated")
        result = scope.spelled(self._annotation(scope)) if kind == "annotated" else None
        parameters = self._with_defaults(scope)
        if count == 1:
            self.around.results[name] = self.results[0] if result is None else result
        return t.Function(name, parameters, result, self._attributes(), tuple(statements))

    def kernel(self) -> t.Function:
        """A kernel: what it computes is left in its parameters (AMB-LANG-98)."""
        name = self.around.names.fresh(words.FUNCTIONS)
        scope = Scope(self.around, self.choose, in_kernel=True)
        body = Body(scope)
        type_ = t.Type(scope.dtype(), (self.choose.between(1, 3), 2))
        output = scope.parameter(type_)
        assert output is not None
        statements = [*body.block(2), t.Assign(output.name, (), body.expr(type_))]
        parameters = tuple(t.Parameter(each.name, each.type) for each in scope.parameters.values())
        return t.Function(name, parameters, None, self._attributes(), tuple(statements), "kernel")

    def _perhaps_run_the_kernel(self, kernel: t.Function) -> None:
        """A kernel in the place of the last func: it gives its tensor parameters as it leaves them (AMB-LANG-150)."""
        if self.choose.below(2):
            self.main = kernel
            self.results = tuple(each.type for each in kernel.parameters if each.type.shape)

    def _result_type(self, scope: Scope) -> t.Type:
        """Of a variable, or any; a named dimension needs a parameter that has it."""
        variables = [each.type for each in scope.visible().values()]
        if variables and self.choose.below(2):
            return self.choose.pick(variables)
        return scope.any_type()

    def _annotation(self, scope: Scope) -> t.Type:
        """The type of the result; now and then it forgets a dimension (AMB-LANG-123)."""
        (type_,) = self.results
        if not type_.shape or not self.choose.chance(12):
            return type_
        forgotten = tuple(scope.unknown() if self.choose.below(2) else extent for extent in type_.shape)
        return t.Type(type_.dtype, forgotten, type_.layout)

    def _returns(self, body: Body, typed: bool) -> list[t.Stmt]:
        """The end of a body: a return, perhaps one in a branch before it, or one in each of two branches."""
        if not self.results:
            return [t.Return(())] if self.choose.chance(3) else []
        if not self.choose.chance(6):
            return [self._return(body, typed)]
        condition = body.expr(BOOL)

        def last() -> t.Stmt:
            return self._return(body, typed)

        first = tuple(body.inner(1, most=1, last=last))
        if self.choose.below(2):
            return [t.If(condition, first), last()]
        return [t.If(condition, first, tuple(body.inner(1, most=1, last=last)))]

    def _return(self, body: Body, typed: bool) -> t.Return:
        return t.Return(tuple(body.expr(type_, typed) for type_ in self.results))

    def _with_defaults(self, scope: Scope) -> tuple[t.Parameter, ...]:
        """The parameters; the last scalar ones may have defaults (AMB-LANG-74)."""
        parameters = [t.Parameter(each.name, each.type) for each in scope.parameters.values()]
        for place in reversed(range(len(parameters))):
            type_ = parameters[place].type
            if type_.shape or dtypes.kind_of(type_.dtype) == "complex" or not self.choose.chance(4):
                break
            default = t.Literal(dtypes.literal(type_.dtype, self.choose))
            parameters[place] = t.Parameter(parameters[place].name, type_, default)
        return tuple(parameters)

    def _profile_statement(self) -> tuple[t.Stmt, ...]:
        """The profile of the module's functions at the head of a body (AMB-LANG-51)."""
        if not self._profile or not self.around.has("annotations") or not self.choose.chance(4):
            return ()
        return (t.Raw(("numerics.profile", "(", f'"{self._profile}"', ")", ";")),)

    def _attributes(self) -> tuple[t.Attribute, ...]:
        if not self._profile or self.choose.chance(3):
            return ()
        return (t.Attribute("numerics_profile", t.Word(f'"{self._profile}"')),)


# Other texts of the same meaning: no answer may depend on names, spaces, parentheses, order or spelling.


VARIANTS = (
    "other names",
    "other spaces and comments",
    "more parentheses",
    "other order",
    "other spelling",
    "all of it",
)


def vary(program: GeneratedProgram, chooser: Chooser) -> tuple[str, str, str, Mapping[str, Tensor]]:
    """A text of the same meaning: the change, the text, and the function and inputs by their names in it."""
    what = chooser.pick(VARIANTS)
    everything = what == "all of it"
    tree = program.tree
    if everything or what == "other order":
        tree = reordered(tree, chooser)
    names: dict[str, str] = {}
    if everything or what == "other names":
        names = renaming(names_of(tree), chooser)
    style = Style(
        names,
        chooser,
        parentheses=everything or what == "more parentheses",
        respelled=everything or what == "other spelling",
        keywords=everything or what == "other spelling",
    )
    text = render(tree, style)
    source = odd(text, chooser) if everything or what == "other spaces and comments" else plain(text)
    function = ".".join(names.get(part, part) for part in program.function.split("."))
    return what, source, function, {names.get(name, name): value for name, value in program.inputs.items()}


def reordered(program: t.Program, chooser: Chooser) -> t.Program:
    """The same program with its functions in another order; aliases, constants and meshes stay before them."""
    return t.Program(tuple(t.Module(each.name, _reordered(each.declarations, chooser)) for each in program.modules))


def _reordered(declarations: tuple[t.Decl, ...], chooser: Chooser) -> tuple[t.Decl, ...]:
    functions = [each for each in declarations if isinstance(each, t.Function)]
    before = [each for each in declarations if not isinstance(each, t.Function)]
    others = functions[1:] + functions[:1]
    return (*before, *chooser.shuffled(others))
