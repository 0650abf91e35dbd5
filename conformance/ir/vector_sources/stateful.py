"""Operations with state, which is passed and returned: batch norm with running statistics, steps of optimizers."""

from __future__ import annotations

from math import inf, nan

from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.oracle.elementwise import multiply
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import FLOATS, Question, Topic, codes, counted, float_edges, tensor

topic = Topic(__doc__)

NARROW = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"]
INFINITE = [dtype for dtype in FLOATS if dtype != "fp8_e4m3"]
SHAPES = {"2d": (5, 3), "3d": (2, 3, 4), "4d": (2, 3, 2, 5), "one-element": (1, 2)}


def squares(dtype: str, shape: tuple[int, ...], seed: int) -> Tensor:
    """Counted numbers, none of them negative."""
    x = counted(dtype, shape, seed)
    return multiply(x, x)


def batch(dtype: str, shape: tuple[int, ...], axis: int = 1, state: str | None = None) -> list[Tensor]:
    """The operands of a batch norm; its statistics in a dtype of their own."""
    channels = (shape[axis],)
    vectors = [counted(dtype, channels, seed) for seed in (412, 413)]
    statistics = [counted(state or dtype, channels, 414), squares(state or dtype, channels, 415)]
    return [counted(dtype, shape, seed=411), *vectors, *statistics]


@topic.vector("{dtype}/batch-norm/{mode}/{shape}", dtype=FLOATS, mode=["training", "inference"], shape=[*SHAPES])
def batch_norm(dtype: str, mode: str, shape: str) -> Question:
    """Every channel over all else, in row-major order, or by the running statistics, which then stay as they are."""
    return questions.batch_norm(*batch(dtype, SHAPES[shape]), training=mode == "training")


@topic.vector("{dtype}/batch-norm/axis-{axis}", dtype=["bf16", "fp32"], axis=["0", "2", "-1", "-2"])
def channel_axis(dtype: str, axis: str) -> Question:
    """Channels along another axis than the second."""
    return questions.batch_norm(*batch(dtype, (3, 4, 5), int(axis)), axis=int(axis))


@topic.vector("{dtype}/batch-norm/momentum-{momentum}", dtype=["bf16", "fp32"], momentum=["0.0", "0.3", "1.0"])
def momenta(dtype: str, momentum: str) -> Question:
    """The share of the batch in the new statistics, and one less it, each rounded once."""
    return questions.batch_norm(*batch(dtype, (4, 3)), momentum=float(momentum), eps=0.01)


@topic.vector("{dtype}/batch-norm/wide-statistics", dtype=NARROW)
def wide_statistics(dtype: str) -> Question:
    """Statistics held in fp32 beside narrow data; what normalizes is rounded to neither."""
    return questions.batch_norm(*batch(dtype, (4, 3), state="fp32"))


@topic.vector("{dtype}/batch-norm/special", dtype=INFINITE)
def special_channels(dtype: str) -> Question:
    """A channel with NaN or an infinity spoils its own statistics and no other channel."""
    x = tensor(dtype, [[nan, inf, 1, 0], [1, 2, 3, -0.0]])
    ones, zeros = tensor(dtype, [1, 1, 1, 1]), tensor(dtype, [0, 0, 0, 0])
    return questions.batch_norm(x, ones, zeros, zeros, ones)


# Optimizers


def state(dtype: str, held: str | None = None) -> list[Tensor]:
    """A parameter, its gradient, and two averages in a dtype of their own, the second not negative."""
    kept = held or dtype
    return [
        *(counted(dtype, (4, 6), seed) for seed in (421, 422)),
        counted(kept, (4, 6), 423),
        squares(kept, (4, 6), 424),
    ]


def count(number: int) -> Tensor:
    """A step's number."""
    return codes("int32", (), [number])


@topic.vector("{dtype}/sgd/{settings}", dtype=FLOATS, settings=["default", "plain", "slow"])
def sgd(dtype: str, settings: str) -> Question:
    """With the usual momentum, without any, and with a rate that is no power of two."""
    chosen = {
        "default": {"rate": 0.5},
        "plain": {"rate": 0.1, "momentum": 0.0},
        "slow": {"rate": 1e-3, "momentum": 0.7},
    }
    return questions.sgd(*state(dtype)[:3], **chosen[settings])


@topic.vector("{dtype}/sgd/wide-velocity", dtype=NARROW)
def wide_velocity(dtype: str) -> Question:
    """A velocity in fp32 beside narrow parameters; the parameter takes the one that is not rounded."""
    return questions.sgd(*state(dtype, "fp32")[:3], rate=0.1)


@topic.vector("{dtype}/adamw/step-{step}", dtype=FLOATS, step=["1", "2", "1000", "2147483647"])
def adamw(dtype: str, step: str) -> Question:
    """The averages are divided by what they still lack, much at the first step, nothing at the last."""
    return questions.adamw(*state(dtype), count(int(step)), rate=0.1)


@topic.vector("{dtype}/adamw/settings", dtype=FLOATS)
def adamw_settings(dtype: str) -> Question:
    """Every number other than by default."""
    chosen = {"rate": 0.3, "beta1": 0.5, "beta2": 0.7, "eps": 0.1, "decay": 0.2}
    return questions.adamw(*state(dtype), count(3), **chosen)


@topic.vector("{dtype}/adamw/wide-averages", dtype=NARROW)
def wide_averages(dtype: str) -> Question:
    """Averages in fp32 beside narrow parameters."""
    return questions.adamw(*state(dtype, "fp32"), count(2), rate=0.1)


@topic.vector("{dtype}/{optimizer}/scalar", dtype=["bf16", "fp32"], optimizer=["sgd", "adamw"])
def scalars(dtype: str, optimizer: str) -> Question:
    """One parameter alone."""
    one, two = counted(dtype, (), 425), squares(dtype, (), 426)
    if optimizer == "sgd":
        return questions.sgd(one, two, one, rate=0.1)
    return questions.adamw(one, two, one, two, count(1), rate=0.1)


@topic.vector("{dtype}/{optimizer}/edges", dtype=FLOATS, optimizer=["sgd", "adamw"])
def edges(dtype: str, optimizer: str) -> Question:
    """Zeros, subnormals, limits, infinities and NaN as gradients: only their own element is touched."""
    gradient = float_edges(dtype)
    ones = tensor(dtype, [1] * gradient.size)
    if optimizer == "sgd":
        return questions.sgd(ones, gradient, ones, rate=0.5)
    return questions.adamw(ones, gradient, ones, ones, count(1), rate=0.5)
