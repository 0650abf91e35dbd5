"""Compiled binaries and autotune results on disk (runtime specification, 8.2, 15, 19.A; AMB-RT-22, -69, -163).

Every context of these cases keeps its results in a directory of the case.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tessera_conformance.chapters.runtime.kit.cache import FILL, caching, ended, entries, filled, image_of, use, used
from tessera_conformance.chapters.runtime.kit.encoding import elements, packed
from tessera_conformance.chapters.runtime.kit.mesh_session import BYTES, COUNT
from tessera_conformance.marks import clause, feature

OTHER_DTYPE = """module caching {
  kernel fill(N: int32, v: int32, x: tensor<Nxint64>) { x[0:N] = 7; }
}
"""


# What is kept


@feature("env-vars")
@clause("RT-08.2-01")
def test_a_compiled_kernel_is_found_by_the_next_context(impl, check, tmp_path):
    """The first use compiles and keeps; the next finds it, and adds nothing."""
    image = image_of(impl, check)
    session = caching(impl, check, tmp_path)
    check.equal(entries(session), [], "the entries of a directory that is new")
    check.equal(used(session), (0, 0), "hits and misses before any launch")
    check.equal(filled(session, image), 7, "what the kernel has written")
    hits, misses = used(session)
    check.true(hits == 0 and misses > 0, "the first use finds nothing", (hits, misses))
    kept = entries(session)
    ended(session)
    hits, misses = use(impl, check, tmp_path, image)
    check.true(hits > 0 and misses == 0, "the second use finds all that it needs", (hits, misses))
    session = caching(impl, check, tmp_path)
    check.equal(entries(session), kept, "the entries afterwards")


@feature("env-vars")
@clause("RT-08.2-01")
def test_an_entry_names_its_kernel_shape_dtype_and_target(impl, check, tmp_path):
    """It has the kernel's name, the extents, the dtype and the target of the device (AMB-RT-163)."""
    target = check.returns(impl.runtime.tessxDevices(), "tessxDevices succeeds")["devices"][0]["target"]
    session = caching(impl, check, tmp_path)
    filled(session, image_of(impl, check), count=48)
    actual = entries(session)
    check.equal(len(actual), 1, "the number of binaries of one launch on one device")
    for part, text in (("kernel", "fill"), ("shape", "48"), ("dtype", "int32"), ("arch", target)):
        check.true(text in actual[0][part], f"the {part} names {text}", actual[0][part])
    path = Path(actual[0]["path"])
    check.true(path.is_file() and path.is_relative_to(tmp_path), "the entry is a file in the directory", str(path))


@feature("env-vars")
@clause("RT-08.2-01")
def test_a_directory_is_named_in_utf_8(impl, check, tmp_path):
    """The next context finds what the last one kept in a directory with a name beyond ASCII."""
    image = image_of(impl, check)
    use(impl, check, tmp_path / "fach-\u00e4\u03bb", image)
    hits, misses = use(impl, check, tmp_path / "fach-\u00e4\u03bb", image)
    check.true(hits > 0 and misses == 0, "the second use finds all that it needs", (hits, misses))
    names = [file.decode("utf-8", "replace") for file in os.listdir(os.fsencode(tmp_path))]
    check.equal(names, ["fach-\u00e4\u03bb"], "the directories made, in UTF-8")


OTHERS = {
    "kernel": {"kernel": "clear"},
    "shape": {"count": 32},
    "dtype": {"source": OTHER_DTYPE},
}


@feature("env-vars")
@clause("RT-08.2-01")
@pytest.mark.parametrize("part", OTHERS)
def test_another_kernel_shape_or_dtype_is_another_entry(impl, check, tmp_path, part):
    """A first use of it finds nothing, both stay, and their keys differ in that part."""
    stated = dict(OTHERS[part])
    other = image_of(impl, check, stated.pop("source", FILL))
    use(impl, check, tmp_path, image_of(impl, check))
    session = caching(impl, check, tmp_path)
    if part == "dtype":
        module = session.ask("tessModuleLoad", context=session.context, image=other)["module"]
        arguments = packed(("int32", 64), ("int32", 7), ("ptr", session.allocate(512)))
        session.launch(session.kernel_of(module, "fill"), arguments)
        session.synchronize()
    else:
        check.equal(filled(session, other, **stated), 0 if part == "kernel" else 7, "what the kernel has written")
    hits, misses = used(session)
    check.true(hits == 0 and misses > 0, f"nothing is found for another {part}", (hits, misses))
    actual = entries(session)
    check.equal(len(actual), 2, "the number of entries")
    check.true(actual[0][part] != actual[1][part], f"the entries differ in {part}", [entry[part] for entry in actual])


@feature("env-vars")
@clause("RT-08.2-02")
def test_a_result_of_autotuning_is_kept(impl, check, tmp_path):
    """Under TESS_AUTOTUNE a collective has its result looked up: the second context finds the first one's."""
    actual = []
    for count, dtype in ((64, "int32"), (64, "int32"), (32, "int32"), (64, "fp32")):
        session = caching(impl, check, tmp_path, 2, TESS_AUTOTUNE="1")
        pointer = session.upload(elements("int32", *[0] * COUNT))
        session.all_reduce(pointer, count, dtype)
        session.synchronize()
        hits, misses = used(session)
        actual.append((hits > 0, misses > 0, len(entries(session, "autotune"))))
        ended(session)
    first, again, shorter, other = actual
    check.equal(first, (False, True, 1), "hit, miss and entries of the first use")
    check.equal(again, (True, False, 1), "of the same once more")
    check.equal(shorter, (False, True, 2), "of another shape")
    check.equal(other, (False, True, 3), "of another dtype")


@feature("env-vars")
@clause("RT-08.2-02")
def test_an_autotune_result_names_its_collective_count_dtype_and_target(impl, check, tmp_path):
    """It has the collective, count, dtype and the target of the devices (AMB-RT-163)."""
    target = check.returns(impl.runtime.tessxDevices(), "tessxDevices succeeds")["devices"][0]["target"]
    session = caching(impl, check, tmp_path, 2, TESS_AUTOTUNE="1")
    pointer = session.upload(bytes(BYTES))
    session.all_reduce(pointer, 24, "fp32")
    session.synchronize()
    actual = entries(session, "autotune")
    check.equal(len(actual), 1, "the number of results")
    for part, text in (("kernel", "all_reduce"), ("shape", "24"), ("dtype", "fp32"), ("arch", target)):
        check.true(text in actual[0][part], f"the {part} names {text}", actual[0][part])


# What makes it invalid


IDENTITIES = [
    pytest.param("arch", marks=clause("RT-08.2-03")),
    pytest.param("driver", marks=clause("RT-08.2-04")),
    pytest.param("abi_hash", marks=clause("RT-08.2-05")),
]
IDENTITY_TEXTS = ("another of a later release, 7f3a9c01", "another of a later release, 7f3a9c02")
"""Identities that differ from each other in their last character alone."""


@feature("env-vars")
@pytest.mark.parametrize("identity", IDENTITIES)
def test_a_change_of_identity_invalidates_binaries(impl, check, tmp_path, identity):
    """Another architecture, driver or ABI hash: what was kept is not used, and compiled anew for the next (AMB-RT-163).

    Twice, so that the change and not the first use of a text counts.
    """
    image = image_of(impl, check)
    use(impl, check, tmp_path, image)
    for name in IDENTITY_TEXTS:
        hits, misses = use(impl, check, tmp_path, image)
        check.true(hits > 0 and misses == 0, "without a change all is found", (hits, misses))
        check.returns(impl.runtime.tessxSetIdentity(**{identity: name}), "the identity is set")
        hits, misses = use(impl, check, tmp_path, image)
        check.true(hits == 0 and misses > 0, f"nothing is found for {name} {identity}", (hits, misses))


@feature("env-vars")
@pytest.mark.parametrize("identity", IDENTITIES)
def test_a_change_of_identity_concerns_loaded_modules_too(impl, check, tmp_path, identity):
    """Launches after the change do not use the code compiled before it (AMB-RT-163)."""
    session = caching(impl, check, tmp_path)
    pointer = session.allocate(256)
    module = session.ask("tessModuleLoad", context=session.context, image=image_of(impl, check))["module"]
    kernel = session.kernel_of(module, "fill")
    missed = []
    for value, name in enumerate(IDENTITY_TEXTS, 1):
        session.launch(kernel, packed(("int32", 64), ("int32", value), ("ptr", pointer)))
        check.equal(session.integers(pointer), [value] * 64, "what the kernel has written")
        missed.append(used(session)[1])
        check.returns(impl.runtime.tessxSetIdentity(**{identity: name}), "the identity is set")
    check.true(0 < missed[0] < missed[1], "it is compiled anew after the change", missed)


@feature("env-vars")
@pytest.mark.parametrize("identity", IDENTITIES)
def test_a_change_of_identity_invalidates_autotune_results(impl, check, tmp_path, identity):
    """They are found again by the next context only while nothing changes."""

    def tuned():
        session = caching(impl, check, tmp_path, 2, TESS_AUTOTUNE="1")
        pointer = session.upload(bytes(BYTES))
        session.all_reduce(pointer, COUNT, "fp32")
        session.synchronize()
        hits, misses = used(session)
        ended(session)
        return hits > 0, misses > 0

    check.equal([tuned(), tuned()], [(False, True), (True, False)], "hits and misses before the change")
    check.returns(impl.runtime.tessxSetIdentity(**{identity: IDENTITY_TEXTS[0]}), "the identity is set")
    check.equal([tuned(), tuned()], [(False, True), (True, False)], "hits and misses after it")


@feature("env-vars")
@clause("RT-08.2-03")
def test_a_device_of_another_target_has_entries_of_its_own(impl, check, tmp_path):
    """A launch on each kind of device of the machine: an entry for each target, found by that target alone."""
    known = check.returns(impl.runtime.tessxDevices(), "tessxDevices succeeds")["devices"]
    first_of = {entry["target"]: entry["id"] for entry in reversed(known)}
    image = image_of(impl, check)
    for number, (target, device) in enumerate(sorted(first_of.items()), 1):
        session = caching(impl, check, tmp_path)
        axes = {"tp": 0, "pp": 0, "dp": 1, "ep": 0}
        mesh = session.ask("tessMeshCreate", context=session.context, deviceIds=[device], axes=axes)["mesh"]
        stream = session.ask("tessStreamCreate", mesh=mesh, priority=0)["stream"]
        check.equal(filled(replace(session, mesh=mesh, stream=stream), image), 7, "the result")
        hits, misses = used(session)
        check.true(hits == 0 and misses > 0, f"nothing is found for {target}", (hits, misses))
        targets = [entry["arch"] for entry in entries(session)]
        check.equal(len(targets), number, "the number of entries")
        check.true(any(target in entry for entry in targets), f"an entry is for {target}", targets)
        ended(session)
