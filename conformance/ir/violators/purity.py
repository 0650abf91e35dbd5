"""Operations that overwrite their operands, or reuse something of an earlier call (language spec, 2.3 and 4)."""

from dataclasses import replace

import numpy as np

from tessera_reference.numerics.array import Array

from .changes import around, instead


def executing(after, before=lambda: None):
    """Return `Interpreter.block` with functions called before each block and after each instruction."""

    def executed(usual, self, block, arguments, frame):
        before()
        frame.update(zip(block.arguments, arguments, strict=True))
        for instruction in block.instructions:
            single = replace(block, arguments=(), instructions=(instruction,), results=(), exit="yield")
            self.last_uses[single] = [()]
            yield from usual(self, single, (), frame)
            after(block, instruction, frame)
        return (yield from usual(self, replace(block, arguments=(), instructions=()), (), frame))

    return around(executed)


def over(operand, result):
    return result if (result.dtype, result.shape) == (operand.dtype, operand.shape) else operand


def in_place(clause, name, description, operations, change=over):
    """Return a violation in which operations change their first operand, if another operation computed it."""

    def after(block, instruction, frame):
        first = instruction.operands[0] if instruction.operands else None
        if instruction.operation.short_name in operations and first not in block.arguments and first in frame:
            frame[first] = change(frame[first], frame[instruction.results[0]])

    return instead(clause, name, description, "graph.interpreter.Interpreter.block", executing(after))


def remembering(clause, name, description, operations):
    """Return a violation in which operations repeat their results for operands of the same types."""
    known = {}

    def after(block, instruction, frame):
        if instruction.operation.short_name in operations:
            key = (instruction.operation.short_name, *(str(operand.type) for operand in instruction.operands))
            frame[instruction.results[0]] = known.setdefault(key, frame[instruction.results[0]])

    return instead(clause, name, description, "graph.interpreter.Interpreter.block", executing(after, known.clear))


def zeros(operand, result):
    return Array(operand.dtype, np.zeros_like(operand.values))


VIOLATIONS = [
    in_place("LANG-02.3-55", "scatter_add_in_place", "adds updates into the operand itself", ["scatter_add"]),
    in_place("LANG-02.3-55", "softmax_in_place", "writes softmax over its operand", ["softmax"]),
    in_place("LANG-04-02", "norms_in_place", "writes norms over their operand", ["layer_norm", "rms_norm"]),
    in_place("LANG-04-02", "activations_in_place", "writes activations over their operand",
        ["relu", "gelu", "silu", "sigmoid"]),
    in_place("LANG-02.3-55", "functions_in_place", "writes functions over their operand", ["exp", "log", "rsqrt"]),
    in_place("LANG-04-01", "clamp_in_place", "writes bounded numbers over their operand",
        ["clamp", "maximum", "minimum"]),
    in_place("LANG-04-01", "operators_in_place", "writes quotients over their first operand", ["divide"]),
    in_place("LANG-04-02", "sum_as_scratch", "adds up in the place of the operand", ["sum", "mean", "logsumexp"],
        change=zeros),
    in_place("LANG-04-02", "fft_as_scratch", "transforms in the place of the operand", ["fft", "ifft"], change=zeros),
    in_place("LANG-04-01", "argmax_of_magnitudes", "leaves magnitudes where the largest was looked for",
        ["max", "min", "argmax"], change=lambda operand, result: Array(operand.dtype, np.abs(operand.values))),
    remembering("LANG-02.3-55", "remembered_sums", "gives again the sum of another operand of the type", ["sum"]),
    remembering("LANG-04-01", "remembered_functions", "gives again a function of another operand of the type",
        ["tanh", "erf", "sin"]),
    remembering("LANG-02.3-55", "remembered_gathers", "gives again what it gathered from another operand", ["gather"]),
]  # fmt: skip
