"""Element by element, along rows, and elements that only move."""

from __future__ import annotations

import math

from tessera_conformance.vectors.building import complex_of, tensor

from .model import composed

ELEMENTWISE = [
    composed(
        "elements-past-tiles",
        "Elements of several blocks in both directions, and of several matrices, with remainders.",
        "let S: tensor<37x300xfp32> = A * B + A; return S - B, C + C * D, op.select(A < B, A, S);",
        "tensor-ops",
        A="fp32 37x300 edges",
        B="fp32 1x300",
        C="bf16 2x35x131 wide",
        D="bf16 35x131",
    ),
    composed(
        "quotients",
        "A chain whose every rounding shows.",
        "return op.exp(A) * B - A / C;",
        "elementary-functions",
        A="fp32 7x13 edges",
        B="fp32 7x13",
        C="fp32 7x13 edges",
    ),
    composed(
        "selected",
        "A comparison, and what it chooses.",
        "let M: tensor<9x6xbool> = A < B; return M, op.select(M, A, B * 2.0);",
        "tensor-ops",
        A="bf16 9x6 edges",
        B="bf16 9x6",
    ),
    composed(
        "clamped",
        "Ends of ranges.",
        "return op.abs(op.clamp(A, low, high)) + op.maximum(A, B) - op.minimum(A, B);",
        "tensor-ops",
        A="fp16 31 edges",
        B="fp16 31",
        low="fp16",
        high="fp16",
    ),
    composed("wrapping", "Integers that wrap.", "return A * A + B - A * 7;", A="int8 11x5 edges", B="int8 11x5"),
    composed(
        "casts",
        "Down and up the dtypes.",
        "let H: tensor<6x9xfp16> = op.cast(A) @{dtype=fp16}; "
        "let E: tensor<6x9xfp8_e5m2> = op.cast(H) @{dtype=fp8_e5m2}; "
        "return H, E, op.cast(E) @{dtype=fp64}, op.cast(A > 0.0) @{dtype=int32};",
        "casts",
        A="fp32 6x9 edges",
    ),
    composed(
        "stretched",
        "Rows and columns that broadcast.",
        "return A * R + L;",
        "broadcasting-ops",
        A="fp32 5x9",
        R="fp32 9",
        L="fp32 5x1",
    ),
    composed(
        "compared",
        "Comparisons of floats, NaN and zeros of both signs among them, and of small integers of both signs.",
        "return A == B, A != B, A < B, A <= B, A > B, A >= B, I < J, I <= J, I > J, I != J, I >= J;",
        A="fp32 5x9 edges",
        B="fp32 5x9 edges",
        I="int8 4x11",
        J="int8 4x11",
    ),
    composed(
        "stretched-along-batches",
        "Operands of four axes and of fewer, each of which broadcasts along others of them.",
        "return A * B + C, A - D * E;",
        "broadcasting-ops",
        A="fp32 2x3x5x9",
        B="fp32 1x3x5x9",
        C="fp32 2x1x1x9",
        D="fp32 3x5x1",
        E="fp32 2x1x5x9",
    ),
    composed(
        "scalars",
        "Scalars of the host in kernels.",
        "let t: fp32 = s * s + 1.0; return t, A * t - s, t / s;",
        A="fp32 3x11",
        s="fp32",
    ),
    composed(
        "long-chain",
        "More operations than a nest may hold.",
        "let X: tensor<5x5xfp32> = A; for (k in 0:3) { X = X * 1.5 + A; X = X * X - A; X = -X / 3.0; } "
        "return X + A * A - A * X + X * X * X * X * X * X * X * X * X * X * X * X;",
        A="fp32 5x5",
    ),
    composed(
        "functions",
        "Functions that are rounded correctly.",
        "return op.tanh(A) + op.log(op.abs(A)) + op.sqrt(op.abs(A)) * op.erf(A);",
        "elementary-functions tensor-ops",
        A="bf16 29 edges",
    ),
    composed(
        "complex",
        "Numbers of two parts.",
        "return A * B + A, A - B, -A;",
        "extra-dtypes",
        A="complex64 4x7",
        B="complex64 4x7",
    ),
    composed(
        "complex-compared",
        "Numbers that agree in both parts, in one and in none; what is chosen by that, and casts of either part.",
        "let M: tensor<5xbool> = A == B; return M, A != B, op.select(M, A, A + B), op.cast(A) @{dtype=complex128}, "
        "op.cast(C) @{dtype=complex64};",
        "tensor-ops casts extra-dtypes",
        A=complex_of("complex64", tensor("fp32", [1, 1, 2, 3, 0.0]), tensor("fp32", [4, 4, 5, 6, math.nan])),
        B=complex_of("complex64", tensor("fp32", [1, 1, 7, 8, -0.0]), tensor("fp32", [4, 9, 5, 7, math.nan])),
        C="complex128 5 wide",
    ),
]

ROWS = [
    composed(
        "rows-past-tiles",
        "Rows of several blocks and more columns than lanes: sums, softmax and the largest along either axis.",
        "return op.softmax(A) @{axis=1}, op.sum(A) @{axis=0}, op.sum(B) @{axis=1}, op.max(A) @{axis=0};",
        "reductions",
        A="fp32 37x300 wide",
        B="bf16 37x300 wide",
    ),
    composed(
        "sums",
        "Sums along either axis, and of them.",
        "let R: tensor<21xfp32> = op.sum(A) @{axis=0}; return R, op.sum(A) @{axis=1}, op.sum(R) @{axis=0};",
        "reductions",
        A="fp32 13x21 wide",
    ),
    composed(
        "extremes",
        "The largest, the smallest and where they are, NaN among them.",
        "return op.max(A) @{axis=1}, op.min(A) @{axis=0}, op.argmax(A) @{axis=1}, op.argmax(A) @{axis=0};",
        "reductions",
        A="fp32 6x15 edges",
    ),
    composed(
        "middle",
        "The middle of three axes, which stays as one.",
        "return A - op.mean(A) @{axis=1, keepdims=true};",
        "reductions broadcasting-ops",
        A="fp16 3x7x5 wide",
    ),
    composed(
        "softmax-axes",
        "A softmax along either axis.",
        "return op.softmax(A) @{axis=0}, op.softmax(A) @{axis=-1}, op.logsumexp(A) @{axis=1};",
        "reductions",
        A="bf16 7x10",
    ),
    composed(
        "softmax-of-product",
        "Scores, whose softmax is a product again.",
        "return op.softmax((A @ B) * 0.25) @ C;",
        A="fp32 9x6",
        B="fp32 6x11",
        C="fp32 11x4",
    ),
    composed(
        "norms",
        "A norm of a norm.",
        "return op.rms_norm(op.layer_norm(X, G, B), G);",
        "normalization",
        X="bf16 5x13",
        G="bf16 13",
        B="bf16 13",
    ),
    composed(
        "integer-rows",
        "Products and sums of integers.",
        "return op.prod(A) @{axis=1}, op.sum(A * A) @{axis=0};",
        "reductions",
        A="int32 6x7",
    ),
    composed(
        "spectrum",
        "A transform, its square, and back.",
        "let F: tensor<3x12xcomplex64> = op.fft(A); return F, op.ifft(F * F);",
        "inverse-fft extra-dtypes",
        A="complex64 3x12",
    ),
]

MOVEMENT = [
    composed(
        "turned",
        "A transpose of three axes, flattened and cut.",
        "let T: tensor<4x2x5xfp32> = op.transpose(A) @{perm=[2, 0, 1]}; "
        "let F: tensor<8x5xfp32> = op.reshape(T) @{shape=[8, 5]}; return F[1:7, 4:0:-2], F[3, :];",
        "tensor-ops",
        A="fp32 2x5x4",
    ),
    composed(
        "joined",
        "Two matrices joined, framed, and rows of them in any order.",
        "return op.gather(op.pad(op.concat(A, B) @{axis=0}) @{low=[1, 0], high=[0, 2], value=0.5}, I) @{axis=0};",
        "tensor-ops",
        A="bf16 3x5",
        B="bf16 4x5",
        I=tensor("int32", [7, 0, 3, 3, 1]),
    ),
    composed(
        "joined-from-four",
        "Four tensors of three axes joined along the last, and four along the one in the middle.",
        "return op.concat(A, B, C, A) @{axis=-1}, op.concat(A, C, C, D) @{axis=1};",
        "tensor-ops",
        A="fp32 2x3x4",
        B="fp32 2x3x1",
        C="fp32 2x3x4",
        D="fp32 2x2x4",
    ),
    composed(
        "framed",
        "Three axes, each with another number of elements before and behind, and a frame in front or behind alone.",
        "return op.pad(A) @{low=[1, 0, 2], high=[0, 3, 1], value=-1.5}, "
        "op.pad(A) @{low=[0, 2, 0], high=[1, 1, 2]}, op.pad(A) @{low=[2, 1, 1], high=[1, 1, 1], value=0.5};",
        "tensor-ops",
        A="bf16 2x3x5",
    ),
    composed(
        "assigned",
        "Slices that are assigned to.",
        "A[1:4, 2] = V; A[0, :] = A[4, :] * 2; return A, A[:, 1:5:2];",
        A="int32 5x6",
        V="int32 3",
    ),
    composed(
        "assigned-in-steps",
        "Every second row from below, every third column; and every second element of a row.",
        "A[4:0:-2, 1:8:3] = V; A[0, 0:9:2] = W; return A;",
        A="int32 6x9",
        V="int32 2x3",
        W="int32 5",
    ),
    composed(
        "between-products",
        "A product that is turned before the next.",
        "let P: tensor<6x8xfp32> = op.transpose(A @ B); return P @ C;",
        "tensor-ops",
        A="fp32 8x5",
        B="fp32 5x6",
        C="fp32 8x3",
    ),
    composed(
        "spread",
        "A row for every place.",
        "return op.broadcast(R) @{shape=[4, 9]} * "
        "op.cast(op.iota() @{shape=[4, 9], axis=0, dtype=int32}) @{dtype=fp32};",
        "tensor-ops casts",
        R="fp32 9 edges",
    ),
    composed(
        "layouts",
        "A product of a matrix that is copied into another layout and back.",
        "return op.layout_cast(op.layout_cast(A) @{to=col_major}) @{to=row_major} @ B;",
        "layout-casts",
        A="fp32 7x9",
        B="fp32 9x5",
    ),
]
