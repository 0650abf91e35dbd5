"""Kernels: how they are declared, and how they hand back what they computed (language spec, section 2.3).

Kernels with results, defaults or returned values are in `rejections/`.
"""

import pytest

from tessera_conformance.chapters.ir.kit.programs import declared, evaluate, returns
from tessera_conformance.dsl import func, integers, kernel, module, tensor_of
from tessera_conformance.marks import clause

VECTOR = "tensor<4xint32>"
MATRIX = "tensor<2x2xint32>"


@clause("LANG-02.3-08")
@pytest.mark.parametrize(
    "declaration",
    [
        "kernel k() { }",
        "kernel k(A: tensor<4xfp32>) { }",
        "kernel k(n: int32, A: tensor<4xfp32>) { return; }",
        'kernel k() @{numerics_profile="strict"} { }',
        'kernel k(A: tensor<4xfp32>, n: int32) @{numerics_profile="strict"} { A[0] = A[n]; }',
        "kernel k(A: tensor<?xNxbf16; layout=col_major>) { }",
    ],
    ids=["bare", "parameter", "parameters", "attributes", "all", "dynamic"],
)
def test_a_kernel_is_declared_like_a_func(impl, check, declaration):
    """A name, parentheses and a block; parameters and attributes may each be left out."""
    source = module(declaration, func(name="f"))
    check.equal(declared(impl, check, source), {"m": ["k", "f"]})
    check.accepts(impl.language.verify(source=source))


@clause("LANG-02.3-52", "LANG-02.3-08")
def test_a_kernel_is_distinguished_from_a_func(impl, check):
    """The parser names its kind, and so does the IR where it names kinds; the same text with func is a func."""
    for word in ("kernel", "func"):
        source = module(f"{word} k(A: {VECTOR}) {{ A[0] = 1; }}")
        modules = check.accepts(impl.language.parse(source=source))["modules"]
        check.equal(modules[0]["declarations"], [{"kind": word, "name": "k"}], "the declarations")
        lowered = check.accepts(impl.language.lower(source=source, to="graph"))["functions"]
        check.equal(len(lowered), 1, "the number of functions")
        check.equal(lowered[0].get("kind", word), word, "the kind of the lowered function")


@clause("LANG-02.3-52")
@pytest.mark.parametrize(("word", "count"), [("kernel", 2), ("func", 0)])
def test_a_kernel_is_an_entry_point_and_a_func_returns(impl, check, word, count):
    """Run by name, a kernel delivers its tensor parameters; a func of the same text returns nothing (AMB-LANG-98)."""
    source = module(f"{word} k(A: {VECTOR}, n: int32, B: {VECTOR}) {{ B = A + A; }}")
    outputs = evaluate(impl, check, source, "k", **integers(A=[1, 2, 3, 4], n=5, B=[0, 0, 0, 0]))
    check.equal(len(outputs), count, "the number of outputs")


WRITES = {
    "nothing": ("", [1, 2, 3, 4], [5, 6, 7, 8]),
    "bare-return": ("return;", [1, 2, 3, 4], [5, 6, 7, 8]),
    "second": ("B = A + B;", [1, 2, 3, 4], [6, 8, 10, 12]),
    "first": ("A = A * B;", [5, 12, 21, 32], [5, 6, 7, 8]),
    "both": ("A = B; B = A;", [5, 6, 7, 8], [5, 6, 7, 8]),
    "exchanged": (f"let T: {VECTOR} = A; A = B; B = T;", [5, 6, 7, 8], [1, 2, 3, 4]),
    "element": ("B[2] = n;", [1, 2, 3, 4], [5, 6, 9, 8]),
    "slice": ("B[1:3] = A[0:2];", [1, 2, 3, 4], [5, 1, 2, 8]),
    "step": ("A[0:4:2] = 0;", [0, 2, 0, 4], [5, 6, 7, 8]),
    "reversed": ("B[3:0:-1] = A[0:3];", [1, 2, 3, 4], [5, 3, 2, 1]),
    "read-after-write": ("A[0] = n; B[0] = A[0] + 1;", [9, 2, 3, 4], [10, 6, 7, 8]),
    "written-twice": ("B[0] = 1; B[0] = 2;", [1, 2, 3, 4], [2, 6, 7, 8]),
    "loop": ("for (i in 0:4) { B[i] = A[3 - i] * n; }", [1, 2, 3, 4], [36, 27, 18, 9]),
    "while": ("while (A[0] < n) { A[0] = A[0] + B[0]; }", [11, 2, 3, 4], [5, 6, 7, 8]),
    "taken-branch": ("if (n > 5) { B[0] = n; }", [1, 2, 3, 4], [9, 6, 7, 8]),
    "other-branch": ("if (n < 5) { B[0] = n; } else { A[0] = n; }", [9, 2, 3, 4], [5, 6, 7, 8]),
    "call": ("B = add(A, n);", [1, 2, 3, 4], [10, 11, 12, 13]),
    "from-zeros": (f"B = {VECTOR}; A[1] = B[1];", [1, 0, 3, 4], [0, 0, 0, 0]),
}


@clause("LANG-02.3-52", "LANG-02.3-08", "LANG-02.3-19")
@pytest.mark.parametrize(("body", "a", "b"), WRITES.values(), ids=WRITES)
def test_a_kernel_hands_back_what_it_leaves_in_its_parameters(impl, check, body, a, b):
    """Assigned whole, in part, on some path or not at all; those not written come back as they were (AMB-LANG-98).

    The end of a range does not count (AMB-LANG-29), and a tensor expression is zeros (AMB-LANG-53).
    """
    source = module(
        func("return P + p;", parameters=f"P: {VECTOR}, p: int32", result=VECTOR, name="add"),
        kernel(body, parameters=f"A: {VECTOR}, n: int32, B: {VECTOR}"),
    )
    returns(impl, check, source, [a, b], "k", **integers(A=[1, 2, 3, 4], n=9, B=[5, 6, 7, 8]))


@clause("LANG-02.3-52")
@pytest.mark.parametrize(
    ("n", "a", "b"),
    [(0, [1, 2, 3, 4], [5, 6, 7, 8]), (1, [0, 2, 3, 4], [5, 9, 7, 8]), (2, [0, 2, 3, 4], [0, 6, 7, 8])],
    ids=["at-once", "half-way", "at-the-end"],
)
def test_a_kernel_may_return_early(impl, check, n, a, b):
    """Writes before the return are delivered, those in its own block too; writes behind it are not."""
    body = ["if (n == 0) { return; }", "A[0] = 0;", "if (n == 1) { B[1] = 9; return; } else { B[0] = 0; }"]
    source = module(kernel(*body, parameters=f"n: int32, A: {VECTOR}, B: {VECTOR}"))
    returns(impl, check, source, [a, b], "k", **integers(n=n, A=[1, 2, 3, 4], B=[5, 6, 7, 8]))


@clause("LANG-02.3-52", "LANG-02.3-28")
@pytest.mark.parametrize("n", [0, 1])
def test_a_return_where_a_parameter_is_hidden_gives_the_parameter(impl, check, n):
    """A variable of the parameter's name in the block of the return is another one (AMB-LANG-86)."""
    body = ["A[0] = 0;", f"if (n == 1) {{ let A: {VECTOR} = B; A[1] = 9; return; }}", "A[2] = 0;"]
    source = module(kernel(*body, parameters=f"n: int32, A: {VECTOR}, B: {VECTOR}"))
    expected = [[0, 2, 3, 4] if n == 1 else [0, 2, 0, 4], [5, 6, 7, 8]]
    returns(impl, check, source, expected, "k", **integers(n=n, A=[1, 2, 3, 4], B=[5, 6, 7, 8]))


@clause("LANG-02.3-52", "LANG-02.3-19")
@pytest.mark.parametrize(
    "body",
    [
        f"let T: {VECTOR} = A; T[0] = 9; T = T + T;",
        f"if (n > 0) {{ let A: {VECTOR} = B; A[0] = 9; }}",
        "for (A in 0:4) { A = 9; }",
        "clear(A);",
        "n = 9; m = 9;",
    ],
    ids=["copy", "hidden", "iterator", "argument", "scalars"],
)
def test_only_an_assignment_to_the_parameter_writes_it(impl, check, body):
    """Not one to a copy, to another of its name, in a called func, or to a scalar.

    AMB-LANG-86, AMB-LANG-92, AMB-LANG-95.
    """
    source = module(
        func("P[0] = 0;", "return P;", parameters=f"P: {VECTOR}", name="clear"),
        kernel(body, parameters=f"n: int32, A: {VECTOR}, m: int32, B: {VECTOR}"),
    )
    returns(
        impl, check, source, [[1, 2, 3, 4], [5, 6, 7, 8]], "k", **integers(n=1, A=[1, 2, 3, 4], m=2, B=[5, 6, 7, 8])
    )


@clause("LANG-02.3-52", "LANG-02.3-08")
@pytest.mark.parametrize(
    ("parameters", "inputs", "expected"),
    [
        ("", {}, []),
        ("n: int32", {"n": 5}, []),
        (f"A: {VECTOR}", {"A": [1, 2, 3, 4]}, [[1, 2, 3, 4]]),
        (f"Z: {VECTOR}, M: {MATRIX}", {"Z": [1, 2, 3, 4], "M": [[5, 6], [7, 8]]}, [[1, 2, 3, 4], [[5, 6], [7, 8]]]),
        ("n: int32, B: tensor<Nxint32>, A: tensor<?xint32>", {"n": 1, "B": [2, 3], "A": [4]}, [[2, 3], [4]]),
    ],
    ids=["none", "scalar", "one", "two", "dynamic"],
)
def test_a_kernel_delivers_every_tensor_parameter_in_order(impl, check, parameters, inputs, expected):
    """In the order of declaration, of any shape, scalars left out."""
    returns(impl, check, module(kernel(parameters=parameters)), expected, "k", **integers(**inputs))


@clause("LANG-02.3-52")
@pytest.mark.parametrize("dtype", ["fp64", "bf16", "fp8_e5m2", "int8", "bool"])
def test_a_kernel_delivers_tensors_of_every_dtype(impl, check, dtype):
    """Beside a tensor of another dtype."""
    source = module(kernel("A[1] = A[0];", "B[0] = 3;", parameters=f"A: tensor<2x{dtype}>, B: tensor<1xint32>"))
    outputs = evaluate(impl, check, source, "k", A=tensor_of(dtype, [1, 0]), B=tensor_of("int32", [2]))
    check.equal(len(outputs), 2, "the number of tensor parameters")
    check.bits(outputs[0], tensor_of(dtype, [1, 1]))
    check.bits(outputs[1], tensor_of("int32", [3]))


@clause("LANG-02.3-52", "LANG-02.3-03")
def test_kernels_and_funcs_share_a_module(impl, check):
    """Two kernels beside the func that both call; each is run by its name."""
    source = module(
        func("return P @ P;", parameters=f"P: {MATRIX}", result=MATRIX, name="square"),
        kernel("A = square(A);", parameters=f"A: {MATRIX}"),
        kernel("A = square(square(A));", parameters=f"A: {MATRIX}", name="l"),
    )
    for name, expected in (("k", [[2, 1], [1, 1]]), ("l", [[5, 3], [3, 2]])):
        outputs = evaluate(impl, check, source, name, **integers(A=[[1, 1], [1, 0]]))
        check.equal(len(outputs), 1, "the number of tensor parameters")
        check.bits(outputs[0], tensor_of("int32", expected))
