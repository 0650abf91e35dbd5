"""Implementations that break one rule of operators, names, dtypes, literals, shapes or layouts."""

from dataclasses import replace

from tessera_reference.graph import interpreter
from tessera_reference.graph.constant import Constant
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.types import ROW_MAJOR, Tensor
from tessera_reference.numerics import arithmetic
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, dtype

from .changes import after, around, instead, where_refused


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


NAMES = [
    instead("not_equal", "LANG-02.3-67", "takes != for <", "graph.elementwise.NotEqual.compute",
        staticmethod(arithmetic.less)),
    instead("less_equal", "LANG-02.3-70", "takes <= for <", "graph.elementwise.LessEqual.compute",
        staticmethod(arithmetic.less)),
    instead("greater_equal", "LANG-02.3-71", "takes >= for >", "graph.elementwise.GreaterEqual.compute",
        staticmethod(arithmetic.greater)),
    instead("unknown_names", "LANG-03.1-01", "takes an unknown name for zero", "language.expressions.Expressions._name",
        around(zero_for_unknown)),
    instead("implicit_casts", "LANG-03.1-05", "takes a value of any dtype where a type is declared",
        "language.scope._mismatch", around(lambda usual, expected, given, dims:
            None if expected.dtype != given.dtype else usual(expected, given, dims))),
    instead("unknown_dtypes", "LANG-02.3-38", "takes an unknown dtype for fp32", "language.values.dtype_named",
        lambda name: DTYPES.get(name, DTYPES["fp32"])),
    instead("integers_of_doubles", "LANG-02.3-42", "rounds an integer literal in the place of a float to fp64 first",
        "language.values.number", around(number_of_a_double)),
    instead("literals_apart", "LANG-02.3-42", "types the literals among an operation's operands by themselves",
        "language.expressions.is_untyped", lambda expr: False),
    instead("sizes_of_names", "LANG-03.1-03", "does not compare sizes of equal names", "graph.interpreter._bind_one",
        by_rank),
]  # fmt: skip


def product(self):
    return Tensor((*self.a.shape[:-1], self.b.shape[-1]), self.a.dtype, self.a.layout)


def batched_product(self):
    batch = max(self.a.shape[:-2], self.b.shape[:-2], key=lambda shape: (len(shape), shape))
    return Tensor((*batch, self.a.shape[-2], self.b.shape[-1]), self.a.dtype, self.a.layout)


def forgiving(name, clause, description, checks, where, type_of):
    """Return a violation whose products have some type where they should be refused by the clause `checks`."""
    lenient = where_refused(type_of, lambda refusal, self: refusal.clause == checks and where(self))
    return instead(name, clause, description, "graph.reductions.MatMul.infer", lenient)


def casts_first(usual, self):
    if self.a.dtype == dtype("bf16"):
        raise Refusal("types", "bf16 operands do not accumulate in fp32", "fp32 operands", "LANG-03.1-06", "cast both")
    return usual(self)


def typed(name, clause, description, operation, change):
    """Return a violation that changes the type of an operation's result; `change` takes the operation and the type."""
    infers = around(lambda usual, self: replace(usual(self), **change(self, usual(self))))
    return instead(name, clause, description, f"graph.reductions.{operation}.infer", infers)


SHAPES = [
    forgiving("batch_of_one", "LANG-03.2-03", "multiplies a batch of one matrix by a matrix", "LANG-03.2-03",
        lambda self: {*self.a.shape[:-2], *self.b.shape[:-2]} == {1}, batched_product),
    forgiving("inner_ones", "LANG-15-01", "stretches an inner dimension of one", "LANG-05.4-01",
        lambda self: 1 in (self.a.shape[-1], self.b.shape[-2]), product),
    forgiving("one_matrix", "LANG-11-04", "multiplies every matrix of a batch by one matrix", "LANG-03.2-03",
        lambda self: self.b.rank == 2, batched_product),
    instead("elementwise", "LANG-03.2-01", "takes the left shape where elementwise operands do not fit",
        "graph.elementwise.broadcast", lambda a, b: a or b),
    instead("longer_dimension", "LANG-11-03", "takes the longer dimension where elementwise operands differ",
        "graph.elementwise.broadcast", lambda a, b: tuple(map(max, a, b)) if a and b else a or b),
    typed("transposed_product", "LANG-15-15", "swaps the dimensions of a product", "MatMul",
        lambda self, type_: {"shape": (*type_.shape[:-2], type_.shape[-1], type_.shape[-2])}),
    typed("wide_softmax", "LANG-05.2-03", "leaves a softmax in the accumulator type", "Softmax",
        lambda self, type_: {"dtype": type_.dtype.accumulator}),
    typed("right_layout", "LANG-15-03", "gives a product the layout of its right operand", "MatMul",
        lambda self, type_: {"layout": self.b.layout}),
    instead("cast_before_accumulation", "LANG-03.1-06", "wants bf16 operands cast before a product",
        "graph.reductions.MatMul.infer", around(casts_first)),
]  # fmt: skip


def right_as_stored(usual, self, a, b, env):
    if self.b.layout.text.startswith("col_major"):
        b = Array(b.dtype, b.values.T.reshape(b.shape))
    return usual(self, a, b, env)


LAYOUTS = [
    instead("right_as_stored", "LANG-15-02", "reads a right operand in col_major by rows",
        "graph.reductions.MatMul.execute", around(right_as_stored)),
    instead("unknown_layouts", "LANG-15-02", "takes an unknown layout for row_major",
        "language.values.resolve_layout", where_refused(lambda spec: ROW_MAJOR)),
    instead("silent_casts", "LANG-03.3-02", "changes a layout silently where a type is declared",
        "language.scope._mismatch", after(lambda problem: None if problem and problem[0] == "layouts" else problem)),
    instead("types_without_layout", "LANG-05.1-01", "does not show the layout in a tensor type",
        "ir.types.Tensor.__str__", around(lambda usual, self: usual(replace(self, layout=ROW_MAJOR)))),
]  # fmt: skip
