"""Implementations that break one rule of operators, names, dtypes, literals, shapes or layouts."""

from dataclasses import replace

from tessera_conformance.strength import replaced
from tessera_reference.adapter import make
from tessera_reference.graph import elementwise, interpreter
from tessera_reference.graph.constant import Constant
from tessera_reference.graph.reductions import MatMul, Softmax
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.types import ROW_MAJOR, Tensor
from tessera_reference.language import expressions, scope, values
from tessera_reference.numerics import arithmetic
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, dtype

# Operators with other results


def operator(name, number, description, owner, compute):
    """Return a violation with another elementwise operator."""
    substitution = (owner, "compute", staticmethod(compute))
    return replaced(f"LANG-02.3-{number}", description, make, substitution, name=name)


OPERATORS = [
    operator("not_equal", 67, "takes != for <", elementwise.NotEqual, arithmetic.less),
    operator("less_equal", 70, "takes <= for <", elementwise.LessEqual, arithmetic.less),
    operator("greater_equal", 71, "takes >= for >", elementwise.GreaterEqual, arithmetic.greater),
]


# Names, dtypes and literals


def _zero_for_unknown(self, name, expected):
    if self.scope.find(name.text) or name.text in self.around.constants:
        return _name(self, name, expected)
    return self._one(self.scope.emit(Constant(value=0, dtype=dtype("int32")), (), name.span))


def _same_but_for_dtype(expected, given, dims):
    return None if expected.dtype != given.dtype else _mismatch(expected, given, dims)


_name, _mismatch, _exact = expressions.Expressions._name, scope._mismatch, values.exact

unknown_names = replaced(
    "LANG-03.1-01",
    "takes an unknown name for zero",
    make,
    ("language.expressions.Expressions._name", _zero_for_unknown),
)
implicit_casts = replaced(
    "LANG-03.1-05",
    "takes a value of any dtype where a type is declared",
    make,
    ("language.scope._mismatch", _same_but_for_dtype),
)
unknown_dtypes = replaced(
    "LANG-02.3-38",
    "takes an unknown dtype for fp32",
    make,
    ("language.values.dtype_named", lambda name: DTYPES.get(name, DTYPES["fp32"])),
)


def _number_of_a_double(text, negative, is_float, type_):
    whole = str(int(float(text))) if type_.kind == "float" and not is_float else text
    return _number(whole, negative, is_float, type_)


_number = values.number

integers_of_doubles = replaced(
    "LANG-02.3-42",
    "rounds an integer literal in the place of a float to fp64 first",
    make,
    ("language.values.number", _number_of_a_double),
)

literals_apart = replaced(
    "LANG-02.3-42",
    "types the literals among an operation's operands by themselves",
    make,
    ("language.expressions.is_untyped", lambda expr: False),
)


# Shapes


def forgiving(name, clause, description, owner, checks, instead):
    """Return a violation whose operation has the type `instead` where it should refuse by the clause `checks`."""
    infer = owner.infer

    def lenient(self):
        try:
            return infer(self)
        except Refusal as refusal:
            if refusal.clause != checks:
                raise
            return instead(self, refusal)

    return replaced(clause, description, make, (owner, "infer", lenient), name=name)


def changed(name, clause, description, owner, change):
    """Return a violation that changes the result type of an operation."""
    infer = owner.infer
    return replaced(clause, description, make, (owner, "infer", lambda self: change(self, infer(self))), name=name)


def _product(self, refusal):
    return Tensor((*self.a.shape[:-1], self.b.shape[-1]), self.a.dtype, self.a.layout)


def _product_stretching_ones(self, refusal):
    if 1 not in (self.a.shape[-1], self.b.shape[-2]):
        raise refusal
    return _product(self, refusal)


def _batched_product(self, refusal):
    batch = max(self.a.shape[:-2], self.b.shape[:-2], key=lambda shape: (len(shape), shape))
    return Tensor((*batch, self.a.shape[-2], self.b.shape[-1]), self.a.dtype, self.a.layout)


def _one_matrix_for_all(self, refusal):
    if self.b.rank != 2:
        raise refusal
    return _batched_product(self, refusal)


def _without_ones(self, refusal):
    if {*self.a.shape[:-2], *self.b.shape[:-2]} != {1}:
        raise refusal
    return _batched_product(self, refusal)


SHAPES = [
    forgiving("batch_of_one", "LANG-03.2-03", "multiplies a batch of one matrix by a matrix", MatMul, "LANG-03.2-03",
        _without_ones),
    forgiving("inner_ones", "LANG-15-01", "stretches an inner dimension of one", MatMul, "LANG-05.4-01",
        _product_stretching_ones),
    forgiving("one_matrix", "LANG-11-04", "multiplies every matrix of a batch by one matrix", MatMul, "LANG-03.2-03",
        _one_matrix_for_all),
    replaced("LANG-03.2-01", "takes the left shape where elementwise operands do not fit", make,
        ("graph.elementwise.broadcast", lambda a, b: a or b), name="elementwise"),
    replaced("LANG-11-03", "takes the longer dimension where elementwise operands differ", make,
        ("graph.elementwise.broadcast", lambda a, b: tuple(map(max, a, b)) if a and b else a or b),
        name="longer_dimension"),
    changed("transposed_product", "LANG-15-15", "swaps the dimensions of a product", MatMul,
        lambda self, type_: replace(type_, shape=(*type_.shape[:-2], type_.shape[-1], type_.shape[-2]))),
    changed("wide_softmax", "LANG-05.2-03", "leaves a softmax in the accumulator type", Softmax,
        lambda self, type_: replace(type_, dtype=type_.dtype.accumulator)),
    changed("right_layout", "LANG-15-03", "gives a product the layout of its right operand", MatMul,
        lambda self, type_: replace(type_, layout=self.b.layout)),
]  # fmt: skip


def _casts_first(self):
    if self.a.dtype == dtype("bf16"):
        raise Refusal("types", "bf16 operands do not accumulate in fp32", "fp32 operands", "LANG-03.1-06", "cast both")
    return _infer_product(self)


_infer_product = MatMul.infer

cast_before_accumulation = replaced(
    "LANG-03.1-06", "wants bf16 operands cast before a product", make, ("graph.reductions.MatMul.infer", _casts_first)
)


def _bind_by_rank(function, parameter, array, bound):
    if array.dtype != parameter.type.dtype or len(array.shape) != len(parameter.type.shape):
        raise interpreter.InputMismatch(parameter.name, str(parameter.type), interpreter.describe(array))


sizes_of_names = replaced(
    "LANG-03.1-03", "does not compare sizes of equal names", make, ("graph.interpreter._bind_one", _bind_by_rank)
)


# Layouts


def _row_major_if_unknown(spec):
    try:
        return _resolve_layout(spec)
    except Refusal:
        return ROW_MAJOR


def _mismatch_of_rest(expected, given, dims):
    problem = _mismatch(expected, given, dims)
    return None if problem and problem[0] == "layouts" else problem


_resolve_layout, _tensor_text = values.resolve_layout, Tensor.__str__


def _right_as_stored(self, a, b, env):
    if self.b.layout.text.startswith("col_major"):
        b = Array(b.dtype, b.values.T.reshape(b.shape))
    return _multiply(self, a, b, env)


_multiply = MatMul.execute

right_as_stored = replaced(
    "LANG-15-02",
    "reads a right operand in col_major by rows",
    make,
    ("graph.reductions.MatMul.execute", _right_as_stored),
)
unknown_layouts = replaced(
    "LANG-15-02",
    "takes an unknown layout for row_major",
    make,
    ("language.values.resolve_layout", _row_major_if_unknown),
)
silent_casts = replaced(
    "LANG-03.3-02",
    "changes a layout silently where a type is declared",
    make,
    ("language.scope._mismatch", _mismatch_of_rest),
)
types_without_layout = replaced(
    "LANG-05.1-01",
    "does not show the layout in a tensor type",
    make,
    ("ir.types.Tensor.__str__", lambda self: _tensor_text(replace(self, layout=ROW_MAJOR))),
)
