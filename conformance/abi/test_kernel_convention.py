"""The calling convention of kernels: names, results, and the buffer as a kernel sees it (runtime spec, 10, 18)."""

from __future__ import annotations

import re
import struct

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import DETERMINISTIC, KERNELS, MeshSession, compiled, opened
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Returned

NAMES = ["k", "flash_attention_fused", "Q", "_leading", "with_2_digits", "z9", "a" * 63, "_Z3fooi", "operator_new"]
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

SAMPLE_KERNEL = """module m {
  kernel flash_attention(Q: tensor<4xint32>, K: tensor<4xint32>, V: tensor<4xint32>, O: tensor<4xfp32>,
                         B: int32, H: int32, L: int32, D: int32, scale: fp32) {
    Q[0] = B; K[0] = H; V[0] = L; V[1] = D; O[0] = scale;
  }
}
"""
"""The sample's signature; the kernel leaves each scalar where it can be seen."""

TYPED = {
    "int32": ("int32", -70000),
    "int64": ("int64", -(1 << 40) - 5),
    "fp32": ("fp32", 1.5),
    "fp64": ("fp64", -2.25),
}


def kernels_of(impl, check, source):
    """The kernel table of a program."""
    return check.returns(impl.abi.inspect(image=compiled(impl, check, source)))["kernels"]


# Names


@feature("image-inspection")
@clause("RT-10.3-01", "RT-10.3-02")
@pytest.mark.parametrize("name", NAMES, ids=lambda name: name if len(name) < 40 else "long")
def test_a_kernel_keeps_its_name(impl, check, name):
    """Its public name is the one it is declared with, a C identifier, and not mangled (AMB-RT-18)."""
    (actual,) = kernels_of(impl, check, f"module m {{ kernel {name}(x: tensor<4xint32>) {{ x[0] = 1; }} }}")
    check.equal(actual["name"], name, "the public name")


@feature("image-inspection")
@clause("RT-10.3-01")
def test_every_public_name_is_a_c_identifier(impl, check):
    """Letters, digits and underscores, no digit first."""
    for kernel in kernels_of(impl, check, KERNELS):
        check.true(IDENTIFIER.fullmatch(kernel["name"]) is not None, "a C identifier", kernel["name"])


@feature("image-inspection")
@clause("RT-10.3-02")
def test_kernels_of_several_modules_are_not_qualified(impl, check):
    """The names do not carry the module that the kernels are declared in."""
    source = "module one { kernel a(x: tensor<4xint32>) { x[0] = 1; } }\nmodule two { kernel b(n: int32) { } }\n"
    check.equal(sorted(kernel["name"] for kernel in kernels_of(impl, check, source)), ["a", "b"], "the public names")


@clause("RT-10.3-01")
@pytest.mark.parametrize("name", ["int", "double", "register", "sizeof"])
def test_a_keyword_of_c_is_no_name_of_a_kernel(impl, check, name):
    """C cannot call it so; the program is refused, and its twin with another name is not (AMB-RT-105)."""
    source = f"module m {{ kernel {name}(x: tensor<4xint32>) {{ x[0] = 1; }} }}"
    compiled(impl, check, source.replace(f"kernel {name}", f"kernel {name}_"))
    answer = impl.abi.compile(source=source)
    check.reading("AMB-RT-105", "only the spelling of identifiers counts", isinstance(answer, Returned))
    check.rejects(answer, category=("types", "syntax", "TESS_ERR_INVALID_VALUE"))


# Results


@feature("image-inspection")
@clause("RT-10.2-01")
def test_a_kernel_returns_nothing(impl, check):
    """No entry of the kernel table has a result."""
    actual = {kernel["name"]: kernel["returns"] for kernel in kernels_of(impl, check, KERNELS)}
    check.true(len(actual) > 1, "there are kernels", sorted(actual))
    check.equal(actual, {name: [] for name in actual}, "what the kernels return")


def result_behind_arguments(session: MeshSession, image: str, tensor: bool) -> bool:
    """True if a kernel writes its result, which is its argument, where a pointer behind the arguments points."""
    module = session.ask("tessModuleLoad", context=session.context, image=image)["module"]
    data = elements("fp32", 1, 2, 3, 4) if tensor else elements("int32", 7)
    source, target = session.upload(data), session.upload(bytes(len(data)))
    arguments = packed(("ptr", source) if tensor else ("int32", 7), ("ptr", target))
    launched = session.launching(session.kernel_of(module, "k"), arguments)
    return isinstance(launched, Returned) and session.download(target, len(data)) == data


@clause("RT-10.2-01")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        ("kernel k(n: int32) { }", "kernel k(n: int32) -> int32 { return n; }"),
        ("kernel k(n: int32) { return; }", "kernel k(n: int32) { return n; }"),
        ("kernel k(x: tensor<4xfp32>) { return; }", "kernel k(x: tensor<4xfp32>) -> tensor<4xfp32> { return x; }"),
    ],
    ids=["annotated", "returned", "tensor"],
)
def test_a_kernel_with_a_result_is_not_compiled(impl, check, legal, illegal):
    """Annotated or returned, a result is refused (AMB-RT-20)."""
    compiled(impl, check, f"module m {{ {legal} }}")
    answer = impl.abi.compile(source=f"module m {{ {illegal} }}")
    if isinstance(answer, Returned):
        written = result_behind_arguments(opened(impl, check), answer.value["image"], "tensor" in illegal)
        check.reading("AMB-RT-20", "lower the result to an extra pointer argument", written)
    check.rejects(answer, category="types")


@clause("RT-10.2-02")
def test_results_are_written_through_pointers(impl, check):
    """y has the results; x, the arguments in host memory, and memory beside both are as they were."""
    session = opened(impl, check)
    kernel = session.kernel("copy", "module m { kernel copy(x: tensor<64xint32>, y: tensor<64xint32>) { y = x; } }")
    x, y, beside = (session.upload(elements("int32", *[value] * 64)) for value in (7, 1, 9))
    arguments = packed(("ptr", x), ("ptr", y))
    buffer = session.host(arguments)
    session.launch(kernel, argBuffer=buffer, argSize=len(arguments))
    actual = [values_of("int32", session.download(pointer, 256)) for pointer in (x, y, beside)]
    check.equal(actual, [[7] * 64, [7] * 64, [9] * 64], "x, y, and the memory beside them")
    check.equal(session.host_bytes(buffer, len(arguments)), arguments, "the arguments in host memory")


@clause("RT-10.2-02")
def test_a_kernel_writes_where_its_pointer_points(impl, check):
    """The same kernel with another pointer leaves its results there and nowhere else."""
    session = opened(impl, check)
    kernel = session.kernel("put", "module m { kernel put(x: tensor<64xint32>, v: int32) { x[0:64] = v; } }")
    first, second = (session.upload(bytes(256)) for _ in range(2))
    for pointer, value in ((first, 3), (second, 4), (first, 5)):
        session.launch(kernel, packed(("ptr", pointer), ("int32", value)))
    actual = [values_of("int32", session.download(pointer, 256)) for pointer in (first, second)]
    check.equal(actual, [[5] * 64, [4] * 64], "the two results")


# The buffer as a kernel sees it


@clause("RT-10.1-02", "RT-10.1-08", "RT-10.1-09", "RT-10.1-10", "RT-10.1-12", "RT-18-04")
@pytest.mark.parametrize("padding", ["00000000", "ffffffff"])
def test_a_kernel_finds_the_arguments_of_the_sample(impl, check, padding):
    """Launched as in the specification's example, with its buffer written byte by byte; padding is ignored."""
    session = opened(impl, check)
    kernel = session.kernel("flash_attention", SAMPLE_KERNEL)
    pointers = [session.upload(bytes(16)) for _ in "QKVO"]
    buffer = struct.pack("<QQQQiiiif", *pointers, 11, 22, -33, 44, 0.125) + bytes.fromhex(padding)
    check.equal(len(buffer), 0x38, "the bytes of the buffer")
    session.launch(kernel, buffer, grid=[256, 1, 1], block=[128, 1, 1], flags=DETERMINISTIC)
    actual = [session.download(pointer, 16) for pointer in pointers]
    expected = [elements("int32", *values) for values in ([11, 0, 0, 0], [22, 0, 0, 0], [-33, 44, 0, 0])]
    expected.append(elements("fp32", 0.125, 0, 0, 0))
    check.equal([image.hex() for image in actual], [image.hex() for image in expected], "Q, K, V and O")


@clause("RT-10.1-03", "RT-10.1-13")
@pytest.mark.parametrize(("dtype", "value"), TYPED.values(), ids=TYPED)
def test_a_kernel_finds_a_scalar_behind_a_smaller_one(impl, check, dtype, value):
    """Declared scalar, scalar, pointer: the buffer keeps that order, and 8-byte scalars are aligned (AMB-RT-19)."""
    session = opened(impl, check)
    source = f"module m {{ kernel k(n: int32, s: {dtype}, x: tensor<4x{dtype}>) {{ x[0:4] = s; }} }}"
    kernel = session.kernel("k", source)
    size = len(elements(dtype, value))
    x = session.upload(bytes(4 * size))
    session.launch(kernel, packed(("int32", 5), (dtype, value), ("ptr", x)))
    check.equal(values_of(dtype, session.download(x, 4 * size)), [value] * 4, "what the kernel was given")
