"""What the checks of meaning refuse, each beside a twin that they accept (language spec sections 3, 5.4, 10, 11)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tessera_reference.language import CompiledModule, Diagnostic, Rejection, compile_source

Rejects = Callable[[str], Diagnostic]
Accepts = Callable[[str], CompiledModule]

CASES = [
    # names
    ("return a;", "types", 8, "unknown name 'a'", "return A;"),
    ("return g(A);", "types", 8, "unknown function 'g'", "return op.softmax(A);"),
    ("return op.softmx(A);", "types", 8, "unknown operator op.softmx", "return op.softmax(A);"),
    ("return ops.softmax(A);", "types", 8, "unknown name ops.softmax", "return op.softmax(A);"),
    ("let X: fp32; return X;", "types", 21, "'X' is used before", "let X: fp32; return A;"),
    ("let X: fp32 = 1; let X: fp32 = 2;", "types", 18, "'X' is declared twice", "let X: fp32 = 1; let Y: fp32 = 2;"),
    ("let A: fp32 = 1;", "types", 1, "'A' is declared twice", "let a: fp32 = 1;"),
    ("let x: float32 = 1;", "types", 8, "unknown dtype 'float32'", "let x: fp32 = 1;"),
    ("let x: tensor<4xhalf>;", "types", 8, "unknown dtype 'half'", "let x: tensor<4xfp16>;"),
    # arguments and attributes
    (
        "return op.matmul(A);",
        "types",
        8,
        "op.matmul takes 2 operands, 1 given",
        "return op.matmul(A, op.transpose(B));",
    ),
    ("return op.softmax(A, 1);", "types", 8, "op.softmax takes 1 operand, 2 given", "return op.softmax(A, axis=1);"),
    ("return op.softmax(A, axes=1);", "types", 22, "no attribute 'axes'", "return op.softmax(A, axis=1);"),
    ("return op.softmax(A) @{axis=x};", "types", 24, "expected an integer", "return op.softmax(A) @{axis=-1};"),
    ("return op.softmax(A, axis=1.0);", "types", 22, "expected an integer", "return op.softmax(A, axis=1);"),
    (
        "return op.softmax(A, axis=0) @{axis=1};",
        "types",
        32,
        "axis is given twice and differs",
        "return op.softmax(A, axis=1) @{axis=1};",
    ),
    ("return op.softmax(i);", "types", 8, "x is int32, not a tensor", "return op.softmax(A);"),
    ('return "A";', "types", 8, "a string is no value", "return A;"),
    # dtypes
    ("return A + H;", "types", 8, "operands have dtypes fp32 and bf16", "return A + A;"),
    ("return A * i;", "types", 8, "operands have dtypes fp32 and int32", "return A * 2;"),
    ("return A @ op.transpose(H);", "types", 8, "operands have dtypes fp32 and bf16", "return H @ op.transpose(H);"),
    ("return c + c;", "types", 8, "add: is not defined on bool", "return c == c;"),
    ("return c < c;", "types", 8, "less: is not defined on bool", "return c != c;"),
    ("return -c;", "types", 8, "negate: is not defined on bool", "return -i;"),
    ("return +c;", "types", 8, "unary + is not defined on bool", "return +i;"),
    ("let x: fp32 = i;", "types", 15, "let x: expected fp32, found int32", "let x: int32 = i;"),
    ("let x: fp32 = A;", "types", 15, "let x: expected fp32, found tensor<4x8xfp32>", "let x: tensor<4x8xfp32> = A;"),
    ("let x: bool = 1;", "types", 15, "an integer literal stands where bool is wanted", "let x: bool = true;"),
    ("let x: int32 = 1.0;", "types", 16, "a float literal stands where int32 is wanted", "let x: int32 = 1;"),
    ("let x: int8 = 128;", "types", 15, "128 does not fit int8", "let x: int8 = -128;"),
    ("let x: int8 = -129;", "types", 15, "-129 does not fit int8", "let x: int8 = -(128);"),
    ("return 2147483648;", "types", 8, "2147483648 does not fit int32", "let x: int64 = 2147483648;"),
    ("let x: fp16 = 65520;", "types", 15, "65520 does not fit fp16", "let x: fp16 = 65519;"),
    ("return i + 1.5;", "types", 12, "a float literal stands where int32 is wanted", "return i + 1;"),
    # shapes
    ("return A @ B;", "shapes", 8, "matmul: inner dimensions differ: 8 and 6", "return A @ op.transpose(B);"),
    ("return A + B;", "shapes", 8, "add: dimensions differ: 4 and 6", "return A + (A - 1);"),
    (
        "return op.softmax(A, axis=2);",
        "shapes",
        8,
        "axis 2 is out of range for rank 2",
        "return op.softmax(A, axis=1);",
    ),
    ("return op.softmax(A, axis=-3);", "shapes", 8, "axis -3 is out of range", "return op.softmax(A, axis=-2);"),
    ("return op.transpose(A, perm=[0, 0]);", "shapes", 8, "no permutation", "return op.transpose(A, perm=[0, 1]);"),
    ("let x: tensor<8x4xfp32> = A;", "shapes", 27, "let x: expected", "let x: tensor<8x4xfp32> = op.transpose(A);"),
    ("let x: tensor<NxNxfp32> = A;", "shapes", 27, "let x: expected", "let x: tensor<NxMxfp32> = A;"),
    ("let x: tensor<4xfp32> = A;", "shapes", 25, "let x: expected", "let x: tensor<?x?xfp32> = A;"),
    # layouts
    (
        "let x: tensor<4x8xfp32; layout=rowmajor>;",
        "layouts",
        8,
        "unknown layout",
        "let x: tensor<4x8xfp32; layout=row_major>;",
    ),
    (
        "let x: tensor<4xfp32; layout=blocked>;",
        "layouts",
        8,
        "blocked",
        "let x: tensor<4xfp32; layout=blocked(bn=2,bm=1)>;",
    ),
    (
        "let x: tensor<4x8xfp32; layout=col_major> = A;",
        "layouts",
        45,
        "col_major",
        "let x: tensor<4x8xfp32; layout=row_major> = A;",
    ),
]


@pytest.mark.parametrize(("body", "category", "column", "message", "twin"), CASES, ids=[case[0] for case in CASES])
def test_refused_and_its_twin(
    rejects_body: Rejects, accepts_body: Accepts, body: str, category: str, column: int, message: str, twin: str
) -> None:
    found = rejects_body(body)
    assert (found.category, found.phase, found.span.line, found.span.column) == (category, "verify", 3, column)
    assert message in found.message
    assert found.clause
    assert found.requirement
    accepts_body(twin)


def parameters(signature: str, result: str) -> str:
    return f"module m {{\nfunc f({signature}) {{ return {result}; }}\n}}"


@pytest.mark.parametrize(
    ("signature", "wrong", "category", "right"),
    [
        ("X: tensor<?xDxfp32>", "X @ X", "shapes", "X @ op.transpose(X)"),
        ("X: tensor<LxDxfp32>, Y: tensor<MxDxfp32>", "X + Y", "shapes", "X @ op.transpose(Y)"),
        ("X: tensor<?xfp32>, Y: tensor<?xfp32>", "X + Y", "shapes", "X + X"),
        ("X: tensor<2x3x4xfp32>, Y: tensor<1x4x3xfp32>", "X @ Y", "shapes", "X @ op.transpose(X, perm=[0, 2, 1])"),
        ("X: tensor<4xfp32>, Y: tensor<4x4xfp32>", "X @ Y", "shapes", "Y @ Y"),
        ("X: tensor<0x4xfp32>", "op.softmax(X, axis=0)", "shapes", "op.softmax(X, axis=1)"),
        ("X: tensor<4x4xint32>", "op.softmax(X)", "types", "X @ X"),
        ("X: tensor<4x4xbool>", "X @ X", "types", "X == X"),
        ("X: tensor<2x2xfp32; layout=col_major>", "op.softmax(X)", "layouts", "X @ X"),
        ("X: tensor<2x2xfp32; layout=col_major>, Y: tensor<2x2xfp32>", "X + Y", "layouts", "X @ Y"),
        ("X: tensor<2x2xcomplex64>", "X < X", "types", "X == X"),
        ("X: tensor<2x2xcomplex64>", "op.matmul(X, X, out=fp32)", "types", "op.matmul(X, X, out=complex128)"),
        ("X: tensor<2x2xbf16>", "op.matmul(X, X, out=f32)", "types", "op.matmul(X, X, out=fp32)"),
    ],
)
def test_refused_with_other_parameters(
    rejects: Rejects, accepts: Accepts, signature: str, wrong: str, category: str, right: str
) -> None:
    assert rejects(parameters(signature, wrong)).category == category
    accepts(parameters(signature, right))


@pytest.mark.parametrize(
    ("declarations", "category", "message"),
    [
        ("func f() -> fp32 { }", "types", "'f' does not return a value"),
        ("func f() -> fp32 { return; }", "types", "'f' returns 0 values, its annotation one"),
        ("func f(a: fp32) -> fp32 { return a, a; }", "types", "'f' returns 2 values, its annotation one"),
        ("func f(a: fp32) -> int32 { return a; }", "types", "return: expected int32, found fp32"),
        ("func f(a: fp32) { return a; return 1; }", "types", "the returns of a function disagree"),
        ("func f(a: fp32, a: fp32) {}", "types", "'a' is declared twice"),
        ("func f() {} func f() {}", "types", "function 'f' is declared twice"),
        ("func f() { g(); } func g() { f(); }", "types", "recursion: f calls g calls f"),
        ("func f(a: fp32) { g(); } func g(a: fp32) {}", "types", "g: these are not its arguments"),
        ("func f(a: fp32) { g(b=a); } func g(a: fp32) {}", "types", "g: these are not its arguments"),
        ("func f(a: fp32) { g(a); } func g(a: int32) {}", "types", "g: a: expected int32, found fp32"),
        ("func f() { let x: fp32 = g(); } func g() {}", "types", "g returns no value"),
        ("func f() @{numerics_profile=exact} {}", "numerics", "'exact' is no numerics profile"),
        (
            "func f() @{numerics_profile=strict, numerics_profile=fast} {}",
            "numerics",
            "numerics_profile is given twice and differs",
        ),
        (
            "func f() @{numerics_profile=strict} { g(); } func g() @{numerics_profile=fast} {}",
            "numerics",
            "which is fast",
        ),
        ("func f() { schedule.tile(m=2); }", "schedule", "names nothing to schedule"),
        ("func f(X: tensor<2x2xfp32>) { schedule.layout_cast(X); }", "schedule", "takes a name and the layout"),
        (
            'func f(X: tensor<2x2xfp32>) { schedule.layout_cast(X, to="col_major"); let Y: tensor<2x2xfp32> = X; }',
            "layouts",
            "found tensor<2x2xfp32; layout=col_major>",
        ),
        ("@schedule(m=2, m=4) func f() {}", "schedule", "m is given twice and differs"),
        ("mesh g = mesh<axes=[dp], shape=[2]>; func f() @{mesh_axes=[tp]} {}", "distributed", "has the axis 'tp'"),
        ("type t = fragment<16, 0, 16, bf16>;", "tile", "a fragment has an extent of 0"),
        (
            "func g(a: int32) -> int32 { return a; }"
            "func f(X: tensor<2xfp32>) { let d: int32 = 1; let d: int8 = 1; d = X; for (k in 0:2) { d = g; } }",
            "types",
            "'d' is declared twice",
        ),
    ],
)
def test_refused_declarations(rejects: Rejects, declarations: str, category: str, message: str) -> None:
    found = rejects(f"module m {{ {declarations} }}")
    assert (found.category, found.phase) == (category, "verify")
    assert message in found.message


@pytest.mark.parametrize(
    "declarations",
    [
        "func f() -> fp32 { return 1; }",
        "func f(a: fp32) { return a, 1, true; }",
        "func f(a: fp32) { return a; return 1.0; }",
        "func f(a: fp32) -> fp32 { return g(a=a); } func g(a: fp32) -> fp32 { return a; }",
        "func f() { g(1); } func g(a: int8) {}",
        "func f(X: tensor<4x8xfp32>) -> tensor<8x4xfp32> { return t(X); }"
        "func t(X: tensor<?xNxfp32>) { return op.transpose(X); }",
        'func f() @{numerics_profile=fast} { g(); } func g() @{numerics_profile="strict"} {}',
        "func f(X: tensor<NxNxfp32>) -> tensor<?xNxfp32> { return X; }",
        "func f(X: tensor<4xfp32>) { op.softmax(X); }",
        "func true(false: fp32) -> fp32 { return -1; }",
    ],
)
def test_accepted_declarations(accepts: Accepts, declarations: str) -> None:
    accepts(f"module m {{ {declarations} }}")


def test_symbols_belong_to_their_module(accepts: Accepts, rejects: Rejects) -> None:
    accepts("module a { func f() {} } module b { func f() {} }")
    assert "unknown function 'f'" in rejects("module a { func f() {} } module b { func g() { f(); } }").message
    assert "module 'a' is declared twice" in rejects("module a {} module a {}").message


@pytest.mark.parametrize(
    "dtype",
    "fp64 fp32 tf32 bf16 fp16 fp8_e4m3 fp8_e5m2 int64 int32 int16 int8 bool complex64 complex128".split(),
)
def test_every_dtype_is_accepted(accepts: Accepts, dtype: str) -> None:
    compiled = accepts(f"module m {{ func f(x: {dtype}, X: tensor<2x?xNx{dtype}>) {{ return x, X; }} }}")
    assert str(compiled.module.functions["f"].parameters[1].type) == f"tensor<2x?xNx{dtype}>"


def test_several_errors_are_reported_in_source_order() -> None:
    source = "module m {\nfunc f(A: tensor<4xfp32>) {\nlet x: fp32 = B;\nlet y: fp32 = x + A;\nlet z: int8 = 300;\n}\n}"
    with pytest.raises(Rejection) as caught:
        compile_source(source)
    assert [(d.span.line, d.message) for d in caught.value.diagnostics] == [
        (3, "unknown name 'B'"),
        (5, "300 does not fit int8"),
    ]


@pytest.mark.parametrize(
    ("expression", "reading"),
    [
        ("A + A @ T", "this is (A + A) @ T"),
        ("A @ T + T", "this is A @ (T + T)"),
        ("A @ T * 2", "this is A @ (T * 2)"),
    ],
)
def test_loose_matmul_is_warned_about(accepts: Accepts, expression: str, reading: str) -> None:
    compiled = accepts(parameters("A: tensor<4x4xfp32>, T: tensor<4x4xfp32>", expression))
    (warning,) = compiled.warnings
    assert (warning.severity, warning.clause) == ("warning", "LANG-14.2-05")
    assert reading in warning.message


@pytest.mark.parametrize("expression", ["A @ T", "(A + A) @ T", "A @ (T * 2)", "A * 2 @ T", "A + (A @ T)"])
def test_plain_matmul_is_not(accepts: Accepts, expression: str) -> None:
    assert accepts(parameters("A: tensor<4x4xfp32>, T: tensor<4x4xfp32>", expression)).warnings == ()
