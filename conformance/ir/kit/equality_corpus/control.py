"""Control flow, calls and operations without kernels around kernels; programs with schedules of their computation."""

from __future__ import annotations

from tessera_conformance.dsl import module
from tessera_conformance.vectors.building import counted, tensor

from .model import Program, composed

STEP = "  func step(X: tensor<MxKxfp32>, W: tensor<KxKxfp32>) -> tensor<MxKxfp32> { return op.relu(X @ W) + X; }"

DRAWS = {
    "called": "let r: tensor<5x6xfp32> = draw();",
    "branch": "let r: tensor<5x6xfp32> = A; if (A[0, 0] < 1.0e9) { r = op.uniform() @{shape=[5, 6], dtype=fp32}; }",
}

CONTROL = [
    composed(
        "branches",
        "A branch around kernels, and a value of either side.",
        "let P: tensor<6x6xfp32> = A @ A; if (P[0, 0] > 0.0) { P = P @ A; } else { P = op.softmax(P) - A; } return P;",
        A="fp32 6x6",
    ),
    composed(
        "turns",
        "A loop that carries a product.",
        "let P: tensor<5x5xbf16> = A; for (k in 0:4) { P = op.tanh(P @ A) + B; } return P;",
        "elementary-functions",
        A="bf16 5x5",
        B="bf16 5x5",
    ),
    composed(
        "until",
        "A loop that asks what its kernels computed.",
        "let t: int32 = 0; while (A[0, 0] < 100) { A = A @ T; t = t + 1; } return A, t;",
        A=tensor("int32", [[1, 2], [3, 4]]),
        T=tensor("int32", [[2, 1], [1, 3]]),
    ),
    composed(
        "called-twice",
        "One function for two shapes.",
        "return step(A, W), step(step(B, W), W);",
        "tensor-ops",
        STEP,
        A="fp32 3x7",
        B="fp32 5x7",
        W="fp32 7x7",
    ),
    composed(
        "called-in-a-loop",
        "A call in a loop in a branch.",
        "if (c) { for (k in 0:2) { A = step(A, W); } } return A;",
        "tensor-ops",
        STEP,
        A="fp32 4x5",
        W="fp32 5x5",
        c=tensor("bool", True),
    ),
    composed(
        "barrier",
        "Work on both sides of a barrier, and an assertion.",
        'let P: tensor<6x4xfp32> = A @ B; barrier(); assert(s > 0, "positive"); return op.relu(P), A + A;',
        "tensor-ops",
        A="fp32 6x9",
        B="fp32 9x4",
        s=tensor("int32", 3),
    ),
    composed(
        "updates-at-indices",
        "Single elements and a row are written where indices of the run say.",
        "A[p] = s; B[p, q] = s; B[q, 0:3] = A[0:3]; return A, B;",
        A=tensor("int32", [1, 2, 3, 4, 5]),
        B=tensor("int32", [[row * 3 + column for column in range(3)] for row in range(5)]),
        p=tensor("int32", 3),
        q=tensor("int32", 1),
        s=tensor("int32", 9),
    ),
    composed(
        "gradient-of-many-uses",
        "Contributions of several uses, also within composites and calls, are added in program order.",
        "let C: tensor<3x7xfp32> = twice(A) * A + A; let D: tensor<3x7xfp32> = op.silu(C) * C + op.exp(A);"
        " return op.grad(op.mean(D * A) @{axis=1}, A, C);",
        "activations",
        "  func twice(X: tensor<3x7xfp32>) -> tensor<3x7xfp32> { return X * X + X; }",
        A="fp32 3x7",
    ),
    composed(
        "gradient-of-rows",
        "Gradients through a softmax, a logsumexp in bf16 and a normalization, whose operand has uses before.",
        "let S: tensor<3x7xfp32> = A * A + op.layer_norm(A, w, w);"
        " let C: tensor<3x7xbf16> = op.cast(op.softmax(S)) @{dtype=bf16};"
        " let L: tensor<3xbf16> = op.logsumexp(C) @{axis=1}; let M: tensor<3xfp32> = op.mean(S * S) @{axis=1};"
        " return op.grad(op.cast(L) @{dtype=fp32} + M, A, w);",
        "reductions normalization casts",
        A="fp32 3x7",
        w="fp32 7",
    ),
    composed(
        "gradient-of-elements",
        "Gradients through slices, updates, a transposition and a maximum.",
        "let C: tensor<4x6xfp32> = A * A; C[1, 0:3] = A[0, 1:4] * 2.0;"
        " let M: tensor<4xfp32> = op.max(op.transpose(C)) @{axis=0}; return op.grad(M * A[0:4, 2], A);",
        "tensor-ops",
        A="fp32 4x6",
    ),
    composed(
        "gradient-of-a-gradient",
        "Differentiated again.",
        "let C: tensor<3x4xfp32> = A * A * A; let G: tensor<3x4xfp32> = op.grad(C, A); return op.grad(G * A, A);",
        A="fp32 3x4",
    ),
    composed(
        "gradient-of-a-branch",
        "Gradients along what was executed: a branch, and a loop.",
        "let C: tensor<3x4xfp32> = A; if (A[0, 0] < 2.0) { C = A * A; } for (k in 0:3) { C = C * A; }"
        " return op.grad(C * A, A);",
        A="fp32 3x4",
    ),
    composed(
        "gradient-of-nested-branches",
        "A gradient through what only a branch within a branch hands out.",
        "let C: tensor<3x4xfp32> = B; if (B[0, 0] < 1.0e9) { if (B[0, 1] < 1.0e9) { C = A; } } return op.grad(C, A);",
        A="fp32 3x4",
        B="fp32 3x4",
    ),
    composed(
        "gradient-of-a-branch-in-a-call",
        "A gradient through a function that calls another in one of its branches.",
        "let C: tensor<5x3xfp32> = cubed(A); return op.grad(C, A);",
        "",
        "  func squared(X: tensor<5x3xfp32>) -> tensor<5x3xfp32> { return X * X; }",
        "  func cubed(X: tensor<5x3xfp32>) -> tensor<5x3xfp32> {"
        " if (X[0, 0] < 1.0e9) { return squared(X) * X; } return X; }",
        A="fp32 5x3",
    ),
    composed(
        "gradient",
        "Gradients of a product.",
        "let Y: tensor<3x4xfp32> = op.tanh(A @ B); return Y, op.grad(Y, A), op.grad(Y, B);",
        "elementary-functions",
        A="fp32 3x5",
        B="fp32 5x4",
    ),
    composed(
        "drawn",
        "Random numbers, which are drawn on the host, in a product.",
        "return op.uniform() @{shape=[5, 6], dtype=fp32, seed=7} @ A;",
        "random-ops",
        A="fp32 6x4",
    ),
    *(
        composed(
            f"draws-in-order-{name}",
            "Two draws without a seed or a stream, the second within a construct: what reads both sides is not fused.",
            "let p: tensor<5x6xfp32> = op.relu(A); let d: tensor<5x6xfp32> = op.dropout(p) @{rate=0.5};"
            f" {second} let e: tensor<5x6xfp32> = p + r; return d, e;",
            "random-ops",
            "  func draw() -> tensor<5x6xfp32> { return op.uniform() @{shape=[5, 6], dtype=fp32}; }",
            A="fp32 5x6",
        )
        for name, second in DRAWS.items()
    ),
    composed(
        "reduced",
        "A product of every rank, summed over a mesh, in one more kernel.",
        'return dist.all_reduce(A @ B) @{axis=dp, op="sum"} * 0.5;',
        "mesh-collectives",
        "  mesh g = mesh<axes=[dp], shape=[1]>;",
        A="fp32 5x9 wide",
        B="fp32 9x6 wide",
    ),
    Program(
        "kernel",
        "A kernel of the language, which leaves its results in its parameters.",
        module("  kernel f(A: tensor<6x6xfp32>, B: tensor<6x6xfp32>) { A = (A @ B) + A; B = op.softmax(A); }"),
        {name: counted("fp32", (6, 6), seed) for name, seed in (("A", 7101), ("B", 7102))},
    ),
    Program(
        "open-extents",
        "Extents that become numbers with the inputs.",
        module("  func f(A: tensor<MxKxbf16>, B: tensor<KxNxbf16>) { let C: tensor<MxNxbf16> = A @ B; return C, -C; }"),
        {"A": counted("bf16", (9, 21), 7103), "B": counted("bf16", (21, 6), 7104)},
    ),
    Program(
        "open-extents-of-defaults",
        "Extents of parameters with defaults: one is given with another extent, one is left out.",
        module(
            "  let rows: tensor<3x4xfp32> = tensor<3x4xfp32> + 1.5;",
            "  func f(A: tensor<Mx4xfp32>, B: tensor<Nx4xfp32> = rows, C: tensor<Kx4xfp32> = rows) {",
            "    return op.exp(A) * 2.0, op.exp(B) + 1.0, op.exp(C) - 1.0;",
            "  }",
        ),
        {"A": counted("fp32", (2, 4), 7105), "B": counted("fp32", (5, 4), 7106)},
        ("elementary-functions",),
    ),
]

DIRECTED = [
    composed(
        "directed",
        "Every directive about one product, sizes that need padding.",
        "let C: tensor<20x18xbf16> = A @ B; schedule.tile(C) @{m=16, n=16, k=16, pad=[12, 14, 8]}; "
        "schedule.pipeline(C) @{double_buffer=true, depth=3}; return op.relu(C);",
        "tensor-ops",
        A="bf16 20x24 wide",
        B="bf16 24x18 wide",
    ),
    composed(
        "directed-but-k",
        "A directive that leaves the tile's k open, which need not divide.",
        "let C: tensor<20x18xfp32> = A @ B; schedule.tile(C) @{m=4, n=6}; return C;",
        A="fp32 20x37 wide",
        B="fp32 37x18 wide",
    ),
    composed(
        "fused",
        "Elementwise operations that a directive fuses into one nest.",
        "let B: tensor<9x10xfp32> = A * 2.0; let C: tensor<9x10xfp32> = B + A; schedule.fuse(B, C); "
        "schedule.tile(C) @{m=3, n=5}; return C;",
        A="fp32 9x10 edges",
    ),
    composed(
        "stretched-in-tiles",
        "A row and a column that broadcast, both staged, and several tiles along either.",
        'schedule.prefetch(R) @{scope="shared"}; schedule.prefetch(L) @{scope="shared"}; '
        "let B: tensor<10x24xfp32> = R * L; schedule.tile(B) @{m=5, n=8}; return B;",
        "broadcasting-ops",
        R="fp32 1x24",
        L="fp32 10x1",
    ),
    composed(
        "tiled-rows",
        "Rows in tiles that cut them.",
        "let B: tensor<10x24xfp32> = op.softmax(A); schedule.tile(B) @{m=4, n=5, pad=[2, 1]}; "
        'schedule.prefetch(B) @{scope="shared", align=32}; return op.sum(B) @{axis=0};',
        "reductions",
        A="fp32 10x24",
    ),
    composed(
        "annotated",
        "A function whose annotation says how to tile.",
        "return A @ B;",
        "annotations",
        attributes="schedule(m=8, n=8, k=4, depth=2)",
        A="fp32 9x13 wide",
        B="fp32 13x11 wide",
    ),
]
