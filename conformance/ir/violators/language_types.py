"""Implementations that break one rule of operators, names, dtypes, literals, shapes or layouts."""

from dataclasses import replace

from tessera_reference.graph import interpreter
from tessera_reference.graph.constant import Constant
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.types import ROW_MAJOR, Tensor
from tessera_reference.numerics import arithmetic
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, dtype

from .changes import after, around, instead, where_refused, wrapped


def zero_for_unknown(usual, self, name, expected):
    if self.scope.find(name.text) or name.text in self.around.constants:
        return usual(self, name, expected)
    return self._one(self.scope.emit(Constant(value=0, dtype=dtype("int32")), (), name.span))


def number_of_a_double(usual, text, negative, is_float, type_):
    whole = str(int(float(text))) if type_.kind == "float" and not is_float else text
    return usual(whole, negative, is_float, type_)


def by_rank(function, parameter, array, bound):
    if array.dtype != parameter.type.dtype or len(array.shape) != len(parameter.type.shape):
        raise interpreter.InputMismatch(parameter.name, str(parameter.type), interpreter.describe(array))


def product(self):
    return Tensor((*self.a.shape[:-1], self.b.shape[-1]), self.a.dtype, self.a.layout)


def batched_product(self):
    batch = max(self.a.shape[:-2], self.b.shape[:-2], key=lambda shape: (len(shape), shape))
    return Tensor((*batch, self.a.shape[-2], self.b.shape[-1]), self.a.dtype, self.a.layout)


def forgiving(clause, name, description, checks, where, type_of):
    """Return a violation whose products have some type where they should be refused by the clause `checks`."""
    lenient = where_refused(type_of, lambda refusal, self: refusal.clause == checks and where(self))
    return instead(clause, name, description, "graph.reductions.MatMul.infer", lenient)


def casts_first(usual, self):
    if self.a.dtype == dtype("bf16"):
        raise Refusal("types", "bf16 operands do not accumulate in fp32", "fp32 operands", "LANG-03.1-06", "cast both")
    return usual(self)


def typed(clause, name, description, operation, change):
    """Return a violation that changes the type of an operation's result; `change` takes the operation and the type."""
    infers = around(lambda usual, self: replace(usual(self), **change(self, usual(self))))
    return instead(clause, name, description, f"graph.reductions.{operation}.infer", infers)


def right_as_stored(usual, self, a, b, env):
    if self.b.layout.text.startswith("col_major"):
        b = Array(b.dtype, b.values.T.reshape(b.shape))
    return usual(self, a, b, env)


VIOLATIONS = [
    instead("LANG-02.3-67", "not_equal", "takes != for <", "graph.elementwise.NotEqual.compute",
        staticmethod(arithmetic.less)),
    instead("LANG-02.3-70", "less_equal", "takes <= for <", "graph.elementwise.LessEqual.compute",
        staticmethod(arithmetic.less)),
    instead("LANG-02.3-71", "greater_equal", "takes >= for >", "graph.elementwise.GreaterEqual.compute",
        staticmethod(arithmetic.greater)),
    wrapped("LANG-03.1-01", "unknown_names", "takes an unknown name for zero", "language.expressions.Expressions._name",
        zero_for_unknown),
    wrapped("LANG-03.1-05", "implicit_casts", "takes a value of any dtype where a type is declared",
        "language.scope._mismatch", lambda usual, expected, given, dims:
            None if expected.dtype != given.dtype else usual(expected, given, dims)),
    instead("LANG-02.3-38", "unknown_dtypes", "takes an unknown dtype for fp32", "language.values.dtype_named",
        lambda name: DTYPES.get(name, DTYPES["fp32"])),
    wrapped("LANG-02.3-42", "integers_of_doubles", "rounds an integer literal in the place of a float to fp64 first",
        "language.values.number", number_of_a_double),
    instead("LANG-02.3-42", "literals_apart", "types the literals among an operation's operands by themselves",
        "language.expressions.is_untyped", lambda expr: False),
    instead("LANG-03.1-03", "sizes_of_names", "does not compare sizes of equal names", "graph.interpreter._bind_one",
        by_rank),
    forgiving("LANG-03.2-03", "batch_of_one", "multiplies a batch of one matrix by a matrix", "LANG-03.2-03",
        lambda self: {*self.a.shape[:-2], *self.b.shape[:-2]} == {1}, batched_product),
    forgiving("LANG-15-01", "inner_ones", "stretches an inner dimension of one", "LANG-05.4-01",
        lambda self: 1 in (self.a.shape[-1], self.b.shape[-2]), product),
    forgiving("LANG-11-04", "one_matrix", "multiplies every matrix of a batch by one matrix", "LANG-03.2-03",
        lambda self: self.b.rank == 2, batched_product),
    instead("LANG-03.2-01", "elementwise", "takes the left shape where elementwise operands do not fit",
        "graph.elementwise.broadcast", lambda a, b: a or b),
    instead("LANG-11-03", "longer_dimension", "takes the longer dimension where elementwise operands differ",
        "graph.elementwise.broadcast", lambda a, b: tuple(map(max, a, b)) if a and b else a or b),
    typed("LANG-15-15", "transposed_product", "swaps the dimensions of a product", "MatMul",
        lambda self, type_: {"shape": (*type_.shape[:-2], type_.shape[-1], type_.shape[-2])}),
    typed("LANG-05.2-03", "wide_softmax", "leaves a softmax in the accumulator type", "Softmax",
        lambda self, type_: {"dtype": type_.dtype.accumulator}),
    typed("LANG-15-03", "right_layout", "gives a product the layout of its right operand", "MatMul",
        lambda self, type_: {"layout": self.b.layout}),
    wrapped("LANG-03.1-06", "cast_before_accumulation", "wants bf16 operands cast before a product",
        "graph.reductions.MatMul.infer", casts_first),
    wrapped("LANG-15-02", "right_as_stored", "reads a right operand in col_major by rows",
        "graph.reductions.MatMul.execute", right_as_stored),
    instead("LANG-15-02", "unknown_layouts", "takes an unknown layout for row_major",
        "language.values.resolve_layout", where_refused(lambda spec: ROW_MAJOR)),
    instead("LANG-03.3-02", "silent_casts", "changes a layout silently where a type is declared",
        "language.scope._mismatch", after(lambda problem: None if problem and problem[0] == "layouts" else problem)),
    wrapped("LANG-05.1-01", "types_without_layout", "does not show the layout in a tensor type",
        "ir.types.Tensor.__str__", lambda usual, self: usual(replace(self, layout=ROW_MAJOR))),
]  # fmt: skip
