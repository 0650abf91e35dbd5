"""Reductions past every tile: lengths up to 4,097 that leave a remainder of 32, 64, 128 and 256.

Their data tell the order of the reference from orders that agree with it on shorter rows: blocks that are reduced
for themselves, and lanes that take every so many elements.
"""

from __future__ import annotations

from math import inf, nan

from tessera_conformance import oracle
from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.chapters.ir.kit.elements import require_different
from tessera_conformance.oracle.trees import Order
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import Question, Topic, complex_of, counted, tensor

topic = Topic(__doc__)

WIDE = ["fp32", "fp64"]
SPREAD = (-8, 8)
"""Exponents so far apart that sums round at most steps."""

LONG = ["67", "129", "257", "300"]


def blocks(size: int, count: int) -> Order:
    """A left fold of left folds over `size` leaves each, from the start value."""
    total: Order = "c"
    for first in range(0, count, size):
        inner: Order = first
        for leaf in range(first + 1, min(first + size, count)):
            inner = [inner, leaf]
        total = [total, inner]
    return total


def lanes(width: int, count: int) -> Order:
    """Lane i adds every width-th element from i on; then the lanes in adjacent pairs."""
    row: list[Order] = []
    for lane in range(min(width, count)):
        total: Order = lane
        for leaf in range(lane + width, count, width):
            total = [total, leaf]
        row.append(total)
    while len(row) > 1:
        row = [*([a, b] for a, b in zip(row[0::2], row[1::2], strict=False)), *row[len(row) & ~1 :]]
    return row[0]


@topic.vector("{dtype}/matmul/k-{k}", "LANG-10-06", "LANG-10-01", dtype=["bf16", *WIDE], k=["33", *LONG])
def products(dtype: str, k: str) -> Question:
    """A left fold over all of K: no block of 32, 64, 128 or 256 products is added up for itself."""
    count = int(k)
    spread = (-20, 20) if dtype == "bf16" else SPREAD
    a, b = counted(dtype, (4, count), 481, spread), counted(dtype, (count, 4), 482, spread)
    out = None if dtype in WIDE else "fp32"
    found = [oracle.matmul(a, b, out=out)]
    found += [oracle.matmul(a, b, out=out, tree=blocks(size, count)) for size in (32, 64, 128, 256) if size < count - 1]
    require_different(found, "one left fold, and blocks of each size")
    return questions.matmul(a, b, out)


@topic.vector(
    "{dtype}/{reduction}/n-{n}", "LANG-10-06", dtype=["bf16", *WIDE], reduction=["sum", "mean"], n=["65", *LONG]
)
def sums(dtype: str, reduction: str, n: str) -> Question:
    """One tree of adjacent pairs over all elements; lanes that take every 32nd or 256th element add otherwise."""
    count = int(n)
    x = counted(dtype, (6, count), 483, SPREAD)
    if dtype in WIDE:
        found = [oracle.sum_(x, axis=1)]
        found += [oracle.sum_(x, axis=1, tree=lanes(width, count)) for width in (32, 64, 128, 256) if width < count]
        require_different(found, "adjacent pairs, and lanes of each width")
    return questions.reduction(reduction, x, 1)


@topic.vector("{dtype}/{reduction}/n-{n}", "LANG-10-06", dtype=["fp32"], reduction=["sum", "mean"], n=["1000", "4097"])
def longer_sums(dtype: str, reduction: str, n: str) -> Question:
    """One tree past every block and grid: lanes of a block, and parts of 1,024 that are added up, add otherwise."""
    count = int(n)
    x = counted(dtype, (2, count), 496, SPREAD)
    found = [oracle.sum_(x, axis=1)]
    found += [oracle.sum_(x, axis=1, tree=lanes(width, count)) for width in (32, 256, 512)]
    require_different(found, "adjacent pairs, and lanes of each width")
    return questions.reduction(reduction, x, 1)


@topic.vector("fp32/matmul/k-{k}", "LANG-10-06", "LANG-10-01", k=["700", "1025"])
def longer_products(k: str) -> Question:
    """A left fold over a K that libraries split among blocks: of 256 or 512 products, or in two."""
    count = int(k)
    a, b = counted("fp32", (2, count), 497, SPREAD), counted("fp32", (count, 3), 498, SPREAD)
    found = [oracle.matmul(a, b)]
    found += [oracle.matmul(a, b, tree=blocks(size, count)) for size in (256, 512, (count + 1) // 2)]
    require_different(found, "one left fold, and blocks of each size")
    return questions.matmul(a, b)


@topic.vector(
    "{dtype}/{reduction}/n-{n}", dtype=["fp32", "int32"], reduction=["max", "min", "argmax"], n=["1000", "4097"]
)
def farther_extremes(dtype: str, reduction: str, n: str) -> Question:
    """The extreme stands last, on both sides of 512, or of a remainder."""
    last = int(n) - 1
    rows = [[0] * (last + 1) for _ in range(3)]
    for row, places in enumerate([[last], [511, 512, last], [last - 1, last]]):
        for place in places:
            rows[row][place] = -3 if reduction == "min" else 3
    return questions.reduction(reduction, tensor(dtype, rows), 1)


@topic.vector("fp32/softmax/n-{n}", "LANG-15-08", "LANG-15-09", n=["1000", "1100"])
def longer_softmax(n: str) -> Question:
    """A row past every block."""
    return questions.softmax(counted("fp32", (2, int(n)), 499, (-3, 2)))


@topic.vector("{dtype}/sum/along-axis-0-n-{n}", "LANG-10-06", dtype=WIDE, n=["129", "300"])
def columns(dtype: str, n: str) -> Question:
    """The elements of a sum stand a row apart."""
    return questions.reduction("sum", counted(dtype, (int(n), 4), 484, SPREAD), 0)


@topic.vector("{dtype}/prod/n-{n}", dtype=WIDE, n=["67", "257"])
def factors(dtype: str, n: str) -> Question:
    """Factors from 1/2 to 2, rounded at every node."""
    return questions.reduction("prod", counted(dtype, (4, int(n)), 485, (-1, 0)), 1)


@topic.vector("{dtype}/logsumexp/n-{n}", dtype=WIDE, n=["129", "300"])
def log_sum_exp(dtype: str, n: str) -> Question:
    """Exponentials of numbers around zero, all of which count."""
    return questions.reduction("logsumexp", counted(dtype, (4, int(n)), 486, (-3, 2)), 1)


@topic.vector(
    "{dtype}/{reduction}/n-{n}", dtype=["bf16", "int32"], reduction=["max", "min", "argmax"], n=["129", "300"]
)
def extremes(dtype: str, reduction: str, n: str) -> Question:
    """The extreme stands in the remainder, or twice: of equal elements the first counts, whatever their tile."""
    last = int(n) - 1
    rows = [[0] * (last + 1) for _ in range(4)]
    for row, places in enumerate([[last], [40, 100, last], [100, last], [64, 65]]):
        for place in places:
            rows[row][place] = -3 if reduction == "min" else 3
    return questions.reduction(reduction, tensor(dtype, rows), 1)


def uniform_rows(dtype: str, n: int) -> Tensor:
    """Rows of -1, and rows of a zero or an infinity alone, between rows in which a NaN stands first, inside or last."""
    rows = [[-1.0] * n, [-1.0] * n, [-0.0] * n, [-1.0] * n, [-inf] * n, [-1.0] * n, [inf] * n]
    for row, place in ((1, 0), (3, n // 2), (5, n - 1)):
        rows[row][place] = nan
    return tensor(dtype, rows)


@topic.vector(
    "{dtype}/{reduction}/uniform-n-{n}",
    dtype=["bf16", "fp32"],
    reduction=["sum", "prod", "mean", "max", "min", "argmax", "logsumexp"],
    n=["67", "300"],
)
def uniform(dtype: str, reduction: str, n: str) -> Question:
    """A row of one value shows what a tail is filled up with, and a NaN is found wherever it stands."""
    return questions.reduction(reduction, uniform_rows(dtype, int(n)), 1)


@topic.vector("{dtype}/softmax/uniform-n-{n}", "LANG-15-08", dtype=["bf16", "fp32"], n=["67", "300"])
def uniform_softmax(dtype: str, n: str) -> Question:
    """Equal elements share 1 evenly; a NaN or an infinity makes its whole row NaN, and no other."""
    return questions.softmax(uniform_rows(dtype, int(n)))


@topic.vector("{dtype}/softmax/n-{n}", "LANG-15-08", "LANG-15-09", dtype=["bf16", *WIDE], n=["67", "129", "257"])
def softmax(dtype: str, n: str) -> Question:
    """The sum of a long row is one tree, its maximum that of the whole row."""
    return questions.softmax(counted(dtype, (3, int(n)), 487, (-3, 2)))


@topic.vector("{dtype}/{norm}/n-{n}", dtype=WIDE, norm=["layer_norm", "rms_norm"], n=["67", "257"])
def norms(dtype: str, norm: str, n: str) -> Question:
    """Means over a long row."""
    x, gamma, beta = (counted(dtype, shape, seed) for shape, seed in _norm_operands(int(n)))
    return questions.rms_norm(x, gamma) if norm == "rms_norm" else questions.layer_norm(x, gamma, beta)


def _norm_operands(n: int) -> list[tuple[tuple[int, ...], int]]:
    return [((2, n), 488), ((n,), 489), ((n,), 490)]


@topic.vector("{dtype}/flash_attention/l-{length}", dtype=["bf16", "fp32"], length=["67", "130"])
def attention(dtype: str, length: str) -> Question:
    """Three queries and many keys: their weights are one softmax, whatever the block."""
    q, k, v = (counted(dtype, (rows, 4), seed) for rows, seed in ((3, 491), (int(length), 492), (int(length), 493)))
    return questions.flash_attention(q, k, v)


@topic.vector("complex64/fft/n-{n}", dtype=["complex64"], n=["67"])
def transforms(dtype: str, n: str) -> Question:
    """A prime length, whose products are added along the tree of sums."""
    x: Tensor = complex_of(dtype, *(counted("fp32", (1, int(n)), seed) for seed in (494, 495)))
    return questions.fourier("fft", x)
