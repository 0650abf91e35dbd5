"""Modules: loaded, searched for kernels, unloaded (runtime specification, 4.5, 8.1)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import BYTES, COUNT, D2H, KERNELS, compiled, opened, refused
from tessera_conformance.chapters.runtime.kit.modules import PROGRAMS, filled, loading
from tessera_conformance.chapters.runtime.kit.readings import ended_while_busy, no_kernel, rejected
from tessera_conformance.marks import clause, feature

INVALID = "TESS_ERR_INVALID_VALUE"

NAMES = ("fill", "digit", "copy", "axpy", "divide", "index", "steps", "nothing")
"""The kernels of `KERNELS`."""

# Loading


@clause("RT-04.5-04")
@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_a_well_formed_image_loads(impl, check, source):
    """The module is not NULL and has the kernel."""
    session = opened(impl, check)
    module = session.load(source)
    check.true(module != 0, "the module is not NULL", module)
    check.true(session.kernel_of(module, "k") != 0, "the kernel is not NULL")


@clause("RT-04.5-04")
def test_an_image_loads_from_the_memory_of_the_host(impl, check):
    """Named by pointer and size; it may be overwritten when the call has returned."""
    session = opened(impl, check)
    data = bytes.fromhex(compiled(impl, check))
    pointer = session.host(data + b"what follows is not looked at")
    module = session.ask("tessModuleLoad", context=session.context, image=pointer, size=len(data))["module"]
    session.host_write(pointer, bytes(len(data)))
    check.equal(filled(session, session.kernel_of(module, "fill"), 8), [8] * COUNT, "what its kernel writes")


@clause("RT-04.5-04")
def test_an_image_is_what_its_address_holds_when_it_is_loaded(impl, check):
    """Two images are loaded from one address, one after the other; each module has the kernel of its own image."""
    session = opened(impl, check)
    programs = {value: f"module m {{ kernel k(x: tensor<64xint32>) {{ x[0:64] = {value}; }} }}" for value in (3, 5)}
    images = {value: bytes.fromhex(compiled(impl, check, program)) for value, program in programs.items()}
    address, pointer = session.host(bytes(max(map(len, images.values())))), session.allocate(BYTES)
    for value, image in images.items():
        session.host_write(address, image)
        module = session.ask("tessModuleLoad", context=session.context, image=address, size=len(image))["module"]
        session.launch(session.kernel_of(module, "k"), packed(("ptr", pointer)))
        check.equal(session.integers(pointer), [value] * COUNT, f"what the kernel of image {value} writes")
        session.ask("tessModuleUnload", module=module)


@clause("RT-04.5-04")
def test_an_image_may_be_loaded_many_times(impl, check):
    """In one context and in several; each module has a handle of its own."""
    sessions = [opened(impl, check) for _ in range(2)]
    image = compiled(impl, check)
    modules = [session.ask("tessModuleLoad", context=session.context, image=image) for session in sessions * 2]
    check.equal(len({module["module"] for module in modules}), 4, "the number of handles")
    for value, (session, answer) in enumerate(zip(sessions * 2, modules, strict=True)):
        kernel = session.kernel_of(answer["module"], "fill")
        check.equal(filled(session, kernel, value), [value] * COUNT, "what its kernel writes")


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "nothing left": lambda image: b"",
    "one byte": lambda image: image[:1],
    "half": lambda image: image[: len(image) // 2],
    "first byte changed": lambda image: bytes([image[0] ^ 0x80]) + image[1:],
    "zeros": lambda image: bytes(len(image)),
    "text": lambda image: b"module m { kernel k() { } }",
    "a foreign container": lambda image: b"\x7fELF\x02\x01\x01" + image[7:],
}


@clause("RT-04.5-04", "RT-19.A-01", "RT-07-03")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_image_that_is_cut_or_altered_is_refused(impl, check, change):
    """By tessModuleLoad, with TESS_ERR_INVALID_VALUE (AMB-RT-43); single bytes are in `test_spoiled_images.py`."""
    session = opened(impl, check)
    image = bytes.fromhex(compiled(impl, check))
    broken = session.host(change(image) or bytes(1))
    size = len(change(image))
    answer = session.attempt("tessModuleLoad", context=session.context, image=broken, size=size)
    corrupt = rejected(answer, "TESS_ERR_CACHE_CORRUPT")
    check.reading("AMB-RT-43", "TESS_ERR_CACHE_CORRUPT when the hash does not fit", corrupt)
    refused(check, answer, INVALID)
    session.synchronize()
    check.returns(loading(session, image.hex()), "the whole image loads")


@feature("ir-pack")
@clause("RT-04.5-14")
@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_an_ir_pack_loads(impl, check, source):
    """An image with IR and no binaries (AMB-RT-44)."""
    session = opened(impl, check)
    module = session.load(source, ir_pack=True)
    check.true(session.kernel_of(module, "k") != 0, "the kernel is not NULL")


@feature("ir-pack")
@clause("RT-04.5-14")
def test_the_kernels_of_an_ir_pack_run(impl, check):
    """The kernels compute what those of an image with binaries compute."""
    session = opened(impl, check)
    module = session.load(ir_pack=True)
    check.equal(filled(session, session.kernel_of(module, "fill"), 5), [5] * COUNT, "what its kernel writes")


# Unloading


@clause("RT-04.5-15")
@pytest.mark.parametrize("used", [False, True], ids=["unused", "used"])
def test_a_module_can_be_unloaded(impl, check, used):
    """Before any of its kernels ran, and when all that it did is done; then the image loads again."""
    session = opened(impl, check)
    for _ in range(3):
        module = session.load()
        if used:
            check.equal(filled(session, session.kernel_of(module, "fill"), 2), [2] * COUNT, "what its kernel writes")
        check.equal(session.ask("tessModuleUnload", module=module), {}, "no outputs")


@clause("RT-04.5-15")
def test_unloading_leaves_other_modules_alone(impl, check):
    """Also one of the same image, in this context or in another, whose kernels have the same names (AMB-RT-35)."""
    session, elsewhere = opened(impl, check), opened(impl, check)
    first, second, other = session.load(), session.load(), elsewhere.load()
    kernels = [session.kernel_of(first, "fill"), session.kernel_of(second, "fill"), elsewhere.kernel_of(other, "fill")]
    check.equal(filled(session, kernels[0], 3), [3] * COUNT, "what a kernel of the first writes")
    session.ask("tessModuleUnload", module=first)
    check.equal(filled(session, kernels[1], 4), [4] * COUNT, "what a kernel of the second writes")
    check.equal(filled(elsewhere, kernels[2], 5), [5] * COUNT, "what a kernel of another context writes")


@clause("RT-04.5-15")
def test_unloading_lets_queued_work_finish(impl, check):
    """A launch and a copy back to the host are done when tessModuleUnload returns (AMB-RT-50)."""
    session = opened(impl, check)
    module, pointer, target = session.load(), session.allocate(BYTES), session.host(bytes(BYTES))
    session.launch(session.kernel_of(module, "fill"), packed(("int32", 47), ("ptr", pointer)))
    session.copy(target, pointer, BYTES, D2H)
    ended_while_busy(session, "tessModuleUnload", module=module)
    session.synchronize()
    check.equal(values_of("int32", session.host_bytes(target, BYTES)), [47] * COUNT, "what was copied to the host")


# Kernels by name


@clause("RT-04.5-16")
@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_is_found_under_its_name(impl, check, name):
    """A kernel is found at any place in the module, and again by a second request."""
    session = opened(impl, check)
    module = session.load()
    for _ in range(2):
        check.true(session.kernel_of(module, name) != 0, "the kernel is not NULL")


@clause("RT-04.5-16", "RT-19.A-01", "RT-07-03")
@pytest.mark.parametrize(
    "name", ["", "fil", "fill2", "Fill", "fill ", " fill", "kernels", "kernels.fill", "f\u00fcllen"]
)
def test_no_kernel_is_found_under_another_name(impl, check, name):
    """A name that begins, ends or resembles one is another (AMB-RT-42)."""
    session = opened(impl, check)
    module = session.load()
    answer = session.attempt("tessKernelGet", module=module, name=name)
    no_kernel(check, answer)
    session.kernel_of(module, "fill")


@clause("RT-04.5-16")
def test_each_name_finds_its_own_kernel(impl, check):
    """Three kernels do three things; a name that begins another is no other."""
    texts = {"a": "1", "ab": "2", "b": "3", "A": "4", "a_1": "5", "_a": "6"}
    kernels = "".join(f"kernel {name}(x: tensor<64xint32>) {{ x[0:64] = {value}; }} " for name, value in texts.items())
    session = opened(impl, check)
    module = session.load(f"module m {{ {kernels} }}")
    for name, value in texts.items():
        pointer = session.allocate(BYTES)
        session.launch(session.kernel_of(module, name), packed(("ptr", pointer)))
        check.equal(session.integers(pointer), [int(value)] * COUNT, f"what kernel {name} writes")


@clause("RT-04.5-16")
def test_each_of_many_kernels_is_found(impl, check):
    """A module of 66: the first, the last and those about 16, 32 and 64 do what their names say."""
    kernels = "".join(f"kernel k{number}(x: tensor<64xint32>) {{ x[0:64] = {number}; }} " for number in range(66))
    session = opened(impl, check)
    module, pointer = session.load(f"module m {{ {kernels} }}"), session.allocate(BYTES)
    for number in (0, 15, 16, 31, 32, 63, 64, 65):
        session.launch(session.kernel_of(module, f"k{number}"), packed(("ptr", pointer)))
        check.equal(session.integers(pointer), [number] * COUNT, f"what kernel k{number} writes")


@clause("RT-04.5-16")
def test_a_module_has_its_own_kernels_only(impl, check):
    """The names of another module are unknown, and a name that both have finds the one of the module."""
    session = opened(impl, check)
    first = session.load("module m { kernel one(x: tensor<64xint32>) { x[0:64] = 1; } kernel mine() { } }")
    second = session.load("module m { kernel one(x: tensor<64xint32>) { x[0:64] = 2; } kernel yours() { } }")
    no_kernel(check, session.attempt("tessKernelGet", module=first, name="yours"))
    no_kernel(check, session.attempt("tessKernelGet", module=second, name="mine"))
    for value, module in ((1, first), (2, second)):
        pointer = session.allocate(BYTES)
        session.launch(session.kernel_of(module, "one"), packed(("ptr", pointer)))
        check.equal(session.integers(pointer), [value] * COUNT, "what its kernel writes")


@clause("RT-04.5-04", "RT-04.5-16")
def test_a_kernel_computes_what_its_program_says(impl, check):
    """y = a x + y for 64 numbers that binary fractions hold exactly."""
    session = opened(impl, check)
    x = session.upload(elements("fp32", *[place / 4 for place in range(COUNT)]))
    y = session.upload(elements("fp32", *[1000.0 - place for place in range(COUNT)]))
    session.launch(session.kernel("axpy", KERNELS), packed(("fp32", 2.5), ("ptr", x), ("ptr", y)))
    expected = [place / 4 * 2.5 + 1000.0 - place for place in range(COUNT)]
    check.equal(values_of("fp32", session.download(y, BYTES)), expected, "the result")
