"""Gradients that would go through a kernel, which has no adjoint (language spec, 5.5; AMB-LANG-59, AMB-LANG-245)."""

from __future__ import annotations

import re

import pytest

from tessera_conformance.chapters.ir.kit import graph_texts
from tessera_conformance.chapters.ir.kit.kernel_texts import KernelText, buffer
from tessera_conformance.check import first_difference
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Returned

pytestmark = feature("tile-ir-text")

T = "tensor<4xfp32>"
MARK = re.compile(r"⟦([^|⟦⟧]*)\|([^⟦⟧]*)⟧")


def launch(result, operand):
    """A kernel of one tensor."""
    return f'{result} = "tessera.tile.launch"({operand}) {{kernel = "tss_kernel_k"}} : ({T}) -> {T}'


def product(result, a, b):
    """Element by element."""
    return f'{result} = "tessera.graph.multiply"({a}, {b}) : ({T}, {T}) -> {T}'


def gradient(y, x):
    """Return the gradient of y with respect to x."""
    return f'%g = "tessera.graph.grad"({y}, {x}) : ({T}, {T}) -> {T}'


def call(result, callee, a, b):
    """Return the text of a call of a function of two tensors."""
    return f'{result} = "tessera.graph.call"({a}, {b}) {{callee = "{callee}"}} : ({T}, {T}) -> {T}'


def ends(exit, value):
    """The end of a function or of a region."""
    return f'"tessera.graph.{exit}"({value}) : ({T}) -> ()'


def function(*operations, name="f", takes=f"%x: {T}, %w: {T}, %c: bool, %n: int32"):
    """A function of the host."""
    return graph_texts.func(*operations, takes=takes, gives=T, name=name)


PAIR = f"%a: {T}, %b: {T}"

WAYS = {
    "at-once": [
        function(launch("%t", "%⟦w|x⟧"), product("%y", "%t", "%x"), gradient("%y", "%x"), ends("return", "%g"))
    ],
    "in-a-branch": [
        function(
            f'%y = "tessera.graph.if"(%c) ({{\n{launch("%t", "%⟦w|x⟧")}\n{ends("yield", "%t")}\n}}, {{\n'
            f"{ends('yield', '%x')}\n}}) : (bool) -> {T}",
            gradient("%y", "%x"),
            ends("return", "%g"),
        )
    ],
    "carried-by-a-loop": [
        function(
            f'%y = "tessera.graph.for"(%n, %n, %n, %x) ({{\n^bb0(%i: int32, %v: {T}):\n'
            f"{launch('%t', '%⟦w|v⟧')}\n{product('%u', '%t', '%x')}\n{ends('yield', '%u')}\n"
            f"}}) : (int32, int32, int32, {T}) -> {T}",
            gradient("%y", "%x"),
            ends("return", "%g"),
        )
    ],
    "into-a-call": [
        function(call("%y", "g", "%x", "%w"), gradient("%y", "%x"), ends("return", "%g")),
        function(launch("%t", "%⟦b|a⟧"), product("%u", "%t", "%a"), ends("return", "%u"), name="g", takes=PAIR),
    ],
    "into-a-call-that-returns-early": [
        function(call("%y", "g", "%x", "%w"), gradient("%y", "%x"), ends("return", "%g")),
        function(
            '%e = "tessera.graph.constant"() {value = true} : () -> bool',
            f'"tessera.graph.if"(%e) ({{\n{launch("%t", "%⟦b|a⟧")}\n{ends("return", "%t")}\n}}, {{\n'
            '"tessera.graph.yield"() : () -> ()\n}) : (bool) -> ()',
            ends("return", "%a"),
            name="g",
            takes=PAIR,
        ),
    ],
    "out-of-a-call": [
        function(launch("%t", "%⟦w|x⟧"), product("%y", "%t", "%x"), call("%z", "g", "%y", "%x"), ends("return", "%z")),
        function(gradient("%a", "%b"), ends("return", "%g"), name="g", takes=PAIR),
    ],
}
"""Functions of the host, by the way of a gradient; with `⟦a|b⟧` it goes past the kernel for a, and through it for b."""


def copying():
    """A kernel that copies its tensor."""
    kernel = KernelText({"in": buffer("fp32", 4), "out": buffer("fp32", 4)}, block=(4, 1, 1))
    place = kernel.index("thread_id")
    kernel.store(kernel.load(kernel["in"], place), kernel["out"], place)
    return kernel


def sources(functions):
    """The legal module and the illegal one."""
    marked = graph_texts.module(*functions, copying().text)
    return [MARK.sub(lambda mark, side=side: mark[side], marked) for side in (1, 2)]


@clause("LANG-05.5-02")
@pytest.mark.parametrize("functions", WAYS.values(), ids=WAYS)
def test_a_gradient_through_a_kernel_is_refused(impl, check, functions):
    """A program is refused if some execution differentiates the kernel; another operand is legal (AMB-LANG-59)."""
    legal, illegal = sources(functions)
    check.accepts(impl.language.verify_ir(text=legal, at="tile"))
    check.rejects(impl.language.verify_ir(text=illegal, at="tile"), category="types")


@clause("LANG-05.5-02")
def test_the_gradients_of_every_module_are_checked(impl, check):
    """The second module of a text differentiates its kernel, the first one does not (AMB-LANG-58, AMB-LANG-59)."""
    texts = sources(WAYS["at-once"])
    legal, illegal = (texts[0] + text.replace('sym_name = "m"', 'sym_name = "n"') for text in texts)
    check.accepts(impl.language.verify_ir(text=legal, at="tile"))
    check.rejects(impl.language.verify_ir(text=illegal, at="tile"), category="types")


@clause("LANG-05.5-02")
def test_a_gradient_through_a_kernel_is_no_number(impl, check):
    """The derivative of k(x) * x by x needs that of k: it is refused, and not k(x) alone (AMB-LANG-59)."""
    legal, illegal = sources(WAYS["at-once"])
    check.accepts(impl.language.verify_ir(text=legal, at="tile"))
    x = tensor_of("fp32", [1.0, 2.0, 3.0, 4.0])
    given = {"x": x, "w": x, "c": tensor_of("bool", True), "n": tensor_of("int32", 1)}
    observed = impl.language.execute_ir(text=illegal, function="f", inputs=given, at="tile")
    if isinstance(observed, Returned):
        check.reading("AMB-LANG-59", "zero gradient", first_difference(observed.value["outputs"][0], x) is None)
    check.rejects(observed, category="types")


@clause("LANG-05.5-01")
def test_what_a_kernel_computed_is_a_factor_of_a_gradient(impl, check):
    """The derivative of k(w) * x by x is k(w): nothing asks for the derivative of the kernel."""
    legal, _ = sources(WAYS["at-once"])
    given = {"x": tensor_of("fp32", [1.0, 2.0, 3.0, 4.0]), "w": tensor_of("fp32", [5.0, -7.0, 0.5, 9.0])}
    flags = {"c": tensor_of("bool", True), "n": tensor_of("int32", 1)}
    observed = impl.language.execute_ir(text=legal, function="f", inputs=given | flags, at="tile")
    check.bits(check.returns(observed)["outputs"][0], given["w"])
