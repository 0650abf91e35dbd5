"""Signatures of modules, and what a context forbids or enforces (runtime specification, 15; AMB-RT-88)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tessera_conformance.chapters.runtime.kit.cache import caching, entries, filled, image_of
from tessera_conformance.chapters.runtime.kit.encoding import packed
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    COUNT,
    DETERMINISTIC,
    DTYPE_IDS,
    SUM,
    compiled,
    opened,
    refused,
    two_contexts,
)
from tessera_conformance.chapters.runtime.kit.policies import KEYS, STRICT
from tessera_conformance.chapters.runtime.kit.readings import rejected
from tessera_conformance.marks import clause, feature

LOOSE = STRICT | {"deterministic": 0}
FAST = LOOSE | {"allowFastMath": 1}


def signed(impl, check, key=None, **options):
    """The image of the kernels, signed by a key or not at all."""
    return compiled(impl, check, **({} if key is None else {"signing_key": KEYS[key][0]}), **options)


def trusting(session, *keys, **policy):
    """Let the context load what these keys have signed."""
    trusted = {"trusted_keys": [KEYS[key][1] for key in keys]} if keys else {}
    session.ask("tessxSetModulePolicy", context=session.context, **trusted, **policy)
    return session


def loading(session, image):
    """Return the answer of tessModuleLoad."""
    return session.attempt("tessModuleLoad", context=session.context, image=image)


def forbidden(check, answer, *statuses):
    """The policy of the context refuses the call with one of these statuses (AMB-RT-88)."""
    check.reading("AMB-RT-88", "UNSUPPORTED", rejected(answer, "TESS_ERR_UNSUPPORTED"))
    refused(check, answer, *statuses)


def seven(session, module):
    """Check that the kernel of a module fills a tensor."""
    pointer = session.allocate(BYTES)
    session.launch(session.kernel_of(module, "fill"), packed(("int32", 7), ("ptr", pointer)))
    session.check.equal(session.integers(pointer), [7] * COUNT, "the result of the kernel")


# Signatures


@clause("RT-15-05")
@pytest.mark.parametrize("key", [None, *KEYS])
def test_a_module_may_be_signed(impl, check, key):
    """Without required keys a module loads and runs, signed or not."""
    session = opened(impl, check)
    module = check.returns(loading(session, signed(impl, check, key)), "the module is loaded")["module"]
    seven(session, module)


@clause("RT-15-05", "RT-15-01")
@feature("runtime-policy")
@pytest.mark.parametrize("signer", [None, *KEYS])
@pytest.mark.parametrize("trusted", [("first",), ("second",), ("first", "third")], ids="+".join)
def test_a_module_is_signed_by_a_key_that_is_trusted(impl, check, signer, trusted):
    """One that is signed by another key, or by none, is TESS_ERR_INVALID_VALUE (AMB-RT-88)."""
    session = trusting(opened(impl, check), *trusted)
    answer = loading(session, signed(impl, check, signer))
    if signer in trusted:
        seven(session, check.returns(answer, "the module is loaded")["module"])
    else:
        forbidden(check, answer, "TESS_ERR_INVALID_VALUE")


@clause("RT-15-05")
@feature("runtime-policy")
def test_the_keys_are_those_of_one_context(impl, check):
    """Another context loads what this one refuses."""
    image = signed(impl, check, "second")
    session, other = two_contexts(impl, check)
    trusting(session, "first")
    forbidden(check, loading(session, image), "TESS_ERR_INVALID_VALUE")
    check.returns(loading(other, image), "another context loads the module")


@clause("RT-15-01")
@feature("runtime-policy")
@pytest.mark.parametrize("part", range(16))
def test_a_signed_module_that_was_altered_is_refused(impl, check, part):
    """One bit is changed in each of sixteen parts of the image; what was signed loads."""
    image = bytes.fromhex(signed(impl, check, "first"))
    session = trusting(opened(impl, check), "first")
    place = len(image) * part // 16 + 5
    altered = image[:place] + bytes([image[place] ^ 4]) + image[place + 1 :]
    answer = loading(session, altered.hex())
    forbidden(check, answer, "TESS_ERR_INVALID_VALUE", "TESS_ERR_ABI_VERSION_MISMATCH", "TESS_ERR_ARCH_MISMATCH")
    check.returns(loading(session, image.hex()), "the image as it was signed is loaded")


@feature("cache-probe", "env-vars", "runtime-policy")
@clause("RT-15-01")
def test_a_module_that_is_refused_leaves_nothing_in_the_cache(impl, check, tmp_path):
    """Two programs have the same kernel, one signed by a stranger: the other's cache entry is used and stays."""
    source = "module m {{ kernel fill(N: int32, v: int32, x: tensor<Nxint32>) {{ x[0:N] = v + {}; }} }}"
    good = image_of(impl, check, source.format(0), signing_key=KEYS["first"][0])
    bad = image_of(impl, check, source.format(1), signing_key=KEYS["second"][0])
    session = trusting(caching(impl, check, tmp_path), "first")
    check.equal(filled(session, good), 7, "the result of the trusted program")
    kept = {entry["path"]: Path(entry["path"]).read_bytes() for entry in entries(session)}
    session = trusting(caching(impl, check, tmp_path), "first")
    forbidden(check, loading(session, bad), "TESS_ERR_INVALID_VALUE")
    actual = {entry["path"]: Path(entry["path"]).read_bytes() for entry in entries(session)}
    check.true(actual == kept and bool(kept), "the entries are as they were", sorted(actual))
    check.equal(filled(session, good), 7, "the result of the trusted program afterwards")


# Fast math


@clause("RT-15-02")
def test_a_policy_with_fast_math_is_refused_where_it_is_forbidden(impl, check):
    """TESS_ERR_DETERMINISM_VIOLATION from tessSetNumericsPolicy; the policy stays, and another one is set."""
    session = opened(impl, check)
    session.set_policy(LOOSE)
    trusting(session, forbid_fast_math=True)
    answer = session.attempt("tessSetNumericsPolicy", context=session.context, policy=FAST)
    forbidden(check, answer, "TESS_ERR_DETERMINISM_VIOLATION")
    actual = session.ask("tessGetNumericsPolicy", context=session.context)["policy"]
    check.equal(actual, LOOSE, "the policy of the context")
    session.set_policy(STRICT)


@clause("RT-15-02")
def test_a_module_with_fast_math_is_refused_where_it_is_forbidden(impl, check):
    """One whose defaults allow it; one whose defaults do not is loaded and runs."""
    session = trusting(opened(impl, check), forbid_fast_math=True)
    forbidden(check, loading(session, signed(impl, check, policy=FAST)), "TESS_ERR_DETERMINISM_VIOLATION")
    seven(session, check.returns(loading(session, signed(impl, check, policy=STRICT)))["module"])


@clause("RT-15-02")
def test_a_launch_with_fast_math_is_refused_where_it_is_forbidden(impl, check):
    """Also where the policy was set, or the module loaded, before it was forbidden in its context (AMB-RT-71)."""
    session = opened(impl, check)
    loose, fast = session.kernel("nothing"), session.kernel("nothing", policy=FAST)
    trusting(session, forbid_fast_math=True)
    forbidden(check, session.launching(fast), "TESS_ERR_DETERMINISM_VIOLATION")
    session.launch(loose)
    session.synchronize()
    second = opened(impl, check)
    second.set_policy(FAST)
    kernel = second.kernel("nothing")
    second.launch(kernel)
    trusting(second, forbid_fast_math=True)
    forbidden(check, second.launching(kernel), "TESS_ERR_DETERMINISM_VIOLATION")


@clause("RT-15-02")
def test_fast_math_is_forbidden_in_one_context(impl, check):
    """Another one takes the policy, and so does this one once it is allowed again."""
    session, other = two_contexts(impl, check)
    trusting(session, forbid_fast_math=True)
    other.set_policy(FAST)
    forbidden(
        check,
        session.attempt("tessSetNumericsPolicy", context=session.context, policy=FAST),
        "TESS_ERR_DETERMINISM_VIOLATION",
    )
    trusting(session, forbid_fast_math=False)
    session.set_policy(FAST)


# Determinism


def reducing(session, function="tessAllReduce", **others):
    """Return the answer of a collective."""
    pointer = session.upload(bytes(BYTES))
    name = "buffer" if function in ("tessAllReduce", "tessBroadcast") else "inout"
    whole = {"mesh": session.mesh, name: pointer, "count": COUNT, "dtype": DTYPE_IDS["int32"]}
    return session.attempt(function, **whole, **others, stream=session.stream)


@clause("RT-15-07")
def test_a_launch_without_determinism_is_refused_where_it_is_enforced(impl, check):
    """TESS_ERR_DETERMINISM_VIOLATION; with the flag, or under a deterministic policy, it runs."""
    session = opened(impl, check)
    session.set_policy(LOOSE)
    kernel = session.kernel("nothing")
    session.launch(kernel)
    trusting(session, enforce_determinism=True)
    forbidden(check, session.launching(kernel), "TESS_ERR_DETERMINISM_VIOLATION")
    session.launch(kernel, flags=DETERMINISTIC)
    session.set_policy(STRICT)
    session.launch(kernel)
    session.synchronize()


@clause("RT-15-07")
def test_a_launch_of_a_module_without_determinism_is_refused_where_it_is_enforced(impl, check):
    """Its defaults govern where the context has no policy; the flag helps, and the context's policy too."""
    session = trusting(opened(impl, check), enforce_determinism=True)
    answer = loading(session, signed(impl, check, policy=LOOSE))
    kernel = session.kernel_of(check.returns(answer, "the module is loaded")["module"], "nothing")
    forbidden(check, session.launching(kernel), "TESS_ERR_DETERMINISM_VIOLATION")
    session.launch(kernel, flags=DETERMINISTIC)
    session.set_policy(STRICT)
    session.launch(kernel)
    session.synchronize()


@clause("RT-15-07")
@pytest.mark.parametrize(
    ("function", "others"),
    [
        ("tessAllReduce", {"op": SUM, "axis": "dp"}),
        ("tessReduceScatter", {"op": SUM, "axis": "dp"}),
        ("tessAllGather", {"axis": "dp"}),
        ("tessBroadcast", {"root": 0}),
    ],
)
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_collective_without_determinism_is_refused_where_it_is_enforced(impl, check, ranks, function, others):
    """Each of the four; under a deterministic policy they run (AMB-RT-04)."""
    session = opened(impl, check, ranks)
    session.set_policy(LOOSE)
    check.returns(reducing(session, function, **others), "the collective succeeds before")
    trusting(session, enforce_determinism=True)
    forbidden(check, reducing(session, function, **others), "TESS_ERR_DETERMINISM_VIOLATION")
    session.set_policy(STRICT)
    check.returns(reducing(session, function, **others), "the collective succeeds under a deterministic policy")
    session.synchronize()


@clause("RT-15-07")
def test_determinism_is_enforced_in_one_context(impl, check):
    """Another one launches without it, and so does this one once it is not enforced."""
    session, other = two_contexts(impl, check)
    trusting(session, enforce_determinism=True)
    for owner in (session, other):
        owner.set_policy(LOOSE)
    kernel = session.kernel("nothing")
    other.launch(other.kernel("nothing"))
    forbidden(check, session.launching(kernel), "TESS_ERR_DETERMINISM_VIOLATION")
    trusting(session, enforce_determinism=False)
    session.launch(kernel)
    session.synchronize()
