"""The contents of an image, judged by loading it and launching its kernels (runtime specification, 2, 8.1, 10.3, 16).

An image is taken as it is, whatever its container: `tessModuleLoad` accepts or refuses it, `tessKernelGet` gives its
kernels, and each writes a number of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import MeshSession, compiled, opened
from tessera_conformance.chapters.runtime.kit.modules import foreign_targets, loading
from tessera_conformance.chapters.runtime.kit.readings import no_kernel
from tessera_conformance.marks import clause
from tessera_conformance.protocol import Returned

INVALID = "TESS_ERR_INVALID_VALUE"
ARCH_MISMATCH, ABI_MISMATCH = "TESS_ERR_ARCH_MISMATCH", "TESS_ERR_ABI_VERSION_MISMATCH"


def modules_of(*groups: Sequence[str]) -> str:
    """A program of a module for each group of names; kernels write 1, 2, ... in the order of the names."""
    number, texts = 0, []
    for place, names in enumerate(groups):
        kernels = []
        for name in names:
            number += 1
            kernels.append(f"kernel {name}(x: tensor<4xint32>) {{ x[0:4] = {number}; }}")
        texts.append(f"module m{place} {{ {' '.join(kernels)} }}")
    return "\n".join(texts)


def judge_kernels(session: MeshSession, module: int, names: Sequence[str]) -> None:
    """Each name leads to its own kernel."""
    for number, name in enumerate(names, 1):
        x = session.upload(bytes(16))
        session.launch(session.kernel_of(module, name), packed(("ptr", x)))
        actual = values_of("int32", session.download(x, 16))
        session.check.equal(actual, [number] * 4, f"what kernel {name} writes")


@clause("RT-02-01", "RT-08.1-07")
@pytest.mark.parametrize(
    "groups",
    [[["k"]], [["first", "second", "third"]], [["left"], ["right", "k"]]],
    ids=["one kernel", "three kernels", "two modules"],
)
def test_an_image_holds_one_kernel_or_several(impl, check, groups):
    """Every kernel of the program is found by its name, and no other is."""
    session = opened(impl, check)
    names = [name for group in groups for name in group]
    module = session.load(modules_of(*groups))
    judge_kernels(session, module, names)
    for other in ("fourth", names[0].upper(), f"{names[0]}_"):
        no_kernel(check, session.attempt("tessKernelGet", module=module, name=other))


@clause("RT-10.3-02", "RT-10.3-01")
@pytest.mark.parametrize("name", ["k", "flash_attention_fused", "_Z3fooi", "operator_new", "Q"])
def test_a_kernel_is_found_by_the_name_that_it_is_declared_with(impl, check, name):
    """Without the name of its module, a prefix, or the marks of C++ (AMB-RT-18)."""
    session = opened(impl, check)
    module = session.load(modules_of([name]))
    judge_kernels(session, module, [name])
    for other in (f"m0.{name}", f"m0::{name}", f"_Z{len(name)}{name}v", f"{name}(int*)", f"@{name}"):
        no_kernel(check, session.attempt("tessKernelGet", module=module, name=other))


@clause("RT-08.1-01")
def test_an_image_needs_nothing_beside_itself(impl, check):
    """Three images, loaded from last to first in a new context when the one before has ended, and run."""
    images = [compiled(impl, check, modules_of(["one", "two"])), compiled(impl, check, modules_of(["two", "one"]))]
    images.append(compiled(impl, check, modules_of(["one"])))
    for image, names in reversed(list(zip(images, (["one", "two"], ["two", "one"], ["one"]), strict=True))):
        session = opened(impl, check)
        module = session.ask("tessModuleLoad", context=session.context, image=image)["module"]
        judge_kernels(session, module, names)
        session.ask("tessModuleUnload", module=module)


@clause("RT-08.1-03", "RT-02-03")
def test_an_image_says_for_which_targets_it_is(impl, check):
    """For the machine's own it is loaded and runs, with others beside them too; for others alone it is refused.

    As AMB-RT-60 has it.
    """
    session = opened(impl, check)
    foreign = foreign_targets(session)
    check.given(bool(foreign), "there is a target that no device of the machine has", foreign)
    own = list(dict.fromkeys(device["target"] for device in session.ask("tessxDevices")["devices"]))
    source = modules_of(["k"])
    judge_kernels(session, session.load(source, targets=own), ["k"])
    check.status(loading(session, compiled(impl, check, source, targets=foreign[:1])), ARCH_MISMATCH)
    judge_kernels(session, session.load(source, targets=foreign[:1] + own), ["k"])


@clause("RT-08.1-02", "RT-16-01", "RT-02-04")
def test_an_image_says_for_which_abi_version_it_is(impl, check):
    """For the runtime's own pair it is loaded and runs; with another major, or a newer minor, it is refused."""
    session = opened(impl, check)
    version = session.ask("tessGetVersion")
    major, minor = version["major"], version["minor"]
    source = modules_of(["k"])
    judge_kernels(session, session.load(source, abi_version=[major, minor]), ["k"])
    for other in ([major + 1, minor], [minor, major + 1]):
        if other[0] != major:
            check.status(loading(session, compiled(impl, check, source, abi_version=other)), ABI_MISMATCH)
    newer = loading(session, compiled(impl, check, source, abi_version=[major, minor + 1]))
    check.reading("AMB-RT-32", "same major always loads", isinstance(newer, Returned))
    check.status(newer, ABI_MISMATCH)


PARAMETERS = {
    "a scalar first": (
        "n: int32, x: tensor<4xint32>, s: int64",
        "x[0:4] = n;",
        [("int32", 7), ("ptr", 0), ("int64", 9)],
    ),
    "a scalar behind": (
        "x: tensor<4xint32>, s: int64, n: int32",
        "x[0:4] = n;",
        [("ptr", 0), ("int64", 9), ("int32", 7)],
    ),
    "a byte before": ("b: int8, n: int32, x: tensor<4xint32>", "x[0:4] = n;", [("int8", 3), ("int32", 7), ("ptr", 0)]),
}


@clause("RT-08.1-08", "RT-10.1-13")
@pytest.mark.parametrize(("parameters", "body", "arguments"), PARAMETERS.values(), ids=PARAMETERS)
def test_an_image_says_where_the_arguments_of_its_kernels_lie(impl, check, parameters, body, arguments):
    """The loaded kernel finds them by the rule of section 10.1, in the order of its declaration."""
    session = opened(impl, check)
    kernel = session.kernel("k", f"module m {{ kernel k({parameters}) {{ {body} }} }}")
    x = session.upload(elements("int32", 1, 2, 3, 4))
    session.launch(kernel, packed(*((type_, x if type_ == "ptr" else value) for type_, value in arguments)))
    check.equal(values_of("int32", session.download(x, 16)), [7] * 4, "what the kernel writes")
