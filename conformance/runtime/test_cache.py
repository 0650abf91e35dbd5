"""Compiled binaries and autotune results on disk (runtime specification, 8.2, 15, 19.A; AMB-RT-22, -69, -163).

Every context of these cases keeps its results in a directory of the case.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tessera_conformance.marks import clause, feature, level
from tessera_conformance.runtime_arguments import elements, packed
from tessera_conformance.runtime_cache import (
    FILL,
    caching,
    ended,
    entries,
    filled,
    first_refusal,
    image_of,
    use,
    used,
)
from tessera_conformance.runtime_programs import BYTES, COUNT, DETERMINISTIC, DTYPE_IDS, SUM, compiled, opened, refused
from tessera_conformance.vectors.counter import counted

STRICT = {"stableReductions": 1, "deterministic": 1, "rngStateless": 1, "allowFastMath": 0}
LOOSE = {"stableReductions": 0, "deterministic": 0, "rngStateless": 0, "allowFastMath": 0}
FAST = LOOSE | {"allowFastMath": 1}
OTHER_DTYPE = """module caching {
  kernel fill(N: int32, v: int32, x: tensor<Nxint64>) { x[0:N] = 7; }
}
"""


def governed(session, policy):
    """The context under a policy."""
    session.ask("tessSetNumericsPolicy", context=session.context, policy=policy)
    return session


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
def test_an_entry_tells_what_it_is_for(impl, check, tmp_path):
    """The kernel by its name, the extents, the dtype and the target of the device stand in it (AMB-RT-163)."""
    target = check.returns(impl.runtime.tessxDevices(), "tessxDevices succeeds")["devices"][0]["target"]
    session = caching(impl, check, tmp_path)
    filled(session, image_of(impl, check), count=48)
    found = entries(session)
    check.equal(len(found), 1, "the number of binaries of one launch on one device")
    for part, text in (("kernel", "fill"), ("shape", "48"), ("dtype", "int32"), ("arch", target)):
        check.true(text in found[0][part], f"the {part} names {text}", found[0][part])
    path = Path(found[0]["path"])
    check.true(path.is_file() and path.is_relative_to(tmp_path), "the entry is a file in the directory", str(path))


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
    found = entries(session)
    check.equal(len(found), 2, "the number of entries")
    check.true(found[0][part] != found[1][part], f"the entries differ in {part}", [each[part] for each in found])


@feature("env-vars")
@clause("RT-08.2-02")
def test_a_result_of_autotuning_is_kept(impl, check, tmp_path):
    """Under TESS_AUTOTUNE a collective has its result looked up: the second context finds the first one's."""
    found = []
    for count, dtype in ((64, "int32"), (64, "int32"), (32, "int32"), (64, "fp32")):
        session = caching(impl, check, tmp_path, 2, TESS_AUTOTUNE="1")
        pointer = session.upload(elements("int32", *[0] * COUNT))
        whole = {"mesh": session.mesh, "buffer": pointer, "count": count, "dtype": DTYPE_IDS[dtype]}
        session.ask("tessAllReduce", **whole, op=SUM, axis="dp", stream=session.stream)
        session.synchronize()
        hits, misses = used(session)
        found.append((hits > 0, misses > 0, len(entries(session, "autotune"))))
        ended(session)
    first, again, shorter, other = found
    check.equal(first, (False, True, 1), "hit, miss and entries of the first use")
    check.equal(again, (True, False, 1), "of the same once more")
    check.equal(shorter, (False, True, 2), "of another shape")
    check.equal(other, (False, True, 3), "of another dtype")


@feature("env-vars")
@clause("RT-08.2-02")
def test_an_autotune_result_tells_what_it_is_for(impl, check, tmp_path):
    """Collective, count, dtype and the target of the devices stand in it (AMB-RT-163)."""
    target = check.returns(impl.runtime.tessxDevices(), "tessxDevices succeeds")["devices"][0]["target"]
    session = caching(impl, check, tmp_path, 2, TESS_AUTOTUNE="1")
    pointer = session.upload(bytes(BYTES))
    whole = {"mesh": session.mesh, "buffer": pointer, "count": 24, "dtype": DTYPE_IDS["fp32"]}
    session.ask("tessAllReduce", **whole, op=SUM, axis="dp", stream=session.stream)
    session.synchronize()
    found = entries(session, "autotune")
    check.equal(len(found), 1, "the number of results")
    for part, text in (("kernel", "all_reduce"), ("shape", "24"), ("dtype", "fp32"), ("arch", target)):
        check.true(text in found[0][part], f"the {part} names {text}", found[0][part])


# What makes it invalid


IDENTITIES = [
    pytest.param("arch", marks=clause("RT-08.2-03")),
    pytest.param("driver", marks=clause("RT-08.2-04")),
    pytest.param("abi_hash", marks=clause("RT-08.2-05")),
]


@feature("env-vars")
@pytest.mark.parametrize("identity", IDENTITIES)
def test_a_change_of_identity_invalidates_binaries(impl, check, tmp_path, identity):
    """Another architecture, driver or ABI hash: what was kept is not used, and compiled anew for the next (AMB-RT-163).

    Twice, so that the change and not the first use of a text counts.
    """
    image = image_of(impl, check)
    use(impl, check, tmp_path, image)
    for name in ("another", "a third"):
        hits, misses = use(impl, check, tmp_path, image)
        check.true(hits > 0 and misses == 0, "without a change all is found", (hits, misses))
        check.returns(impl.runtime.tessxSetIdentity(**{identity: name}), "the identity is set")
        hits, misses = use(impl, check, tmp_path, image)
        check.true(hits == 0 and misses > 0, f"nothing is found for {name} {identity}", (hits, misses))


@feature("env-vars")
@pytest.mark.parametrize("identity", IDENTITIES)
def test_a_change_of_identity_invalidates_autotune_results(impl, check, tmp_path, identity):
    """They are found again by the next context only while nothing changes."""

    def tuned():
        session = caching(impl, check, tmp_path, 2, TESS_AUTOTUNE="1")
        pointer = session.upload(bytes(BYTES))
        whole = {"mesh": session.mesh, "buffer": pointer, "count": COUNT, "dtype": DTYPE_IDS["fp32"]}
        session.ask("tessAllReduce", **whole, op=SUM, axis="dp", stream=session.stream)
        session.synchronize()
        hits, misses = used(session)
        ended(session)
        return hits > 0, misses > 0

    check.equal([tuned(), tuned()], [(False, True), (True, False)], "hits and misses before the change")
    check.returns(impl.runtime.tessxSetIdentity(**{identity: "another"}), "the identity is set")
    check.equal([tuned(), tuned()], [(False, True), (True, False)], "hits and misses after it")


@feature("env-vars")
@clause("RT-08.2-03")
def test_a_device_of_another_target_has_entries_of_its_own(impl, check, tmp_path):
    """A launch on each kind of device of the machine: an entry for each target, found by that target alone."""
    known = check.returns(impl.runtime.tessxDevices(), "tessxDevices succeeds")["devices"]
    first_of = {each["target"]: each["id"] for each in reversed(known)}
    image = image_of(impl, check)
    for number, (target, device) in enumerate(sorted(first_of.items()), 1):
        session = caching(impl, check, tmp_path)
        axes = {"tp": 0, "pp": 0, "dp": 1, "ep": 0}
        mesh = session.ask("tessMeshCreate", context=session.context, deviceIds=[device], axes=axes)["mesh"]
        stream = session.ask("tessStreamCreate", mesh=mesh, priority=0)["stream"]
        check.equal(filled(type(session)(impl, check, session.context, mesh, stream), image), 7, "the result")
        hits, misses = used(session)
        check.true(hits == 0 and misses > 0, f"nothing is found for {target}", (hits, misses))
        told = [each["arch"] for each in entries(session)]
        check.equal(len(told), number, "the number of entries")
        check.true(any(target in each for each in told), f"an entry is for {target}", told)
        ended(session)


# Other policies


@feature("cache-probe", "env-vars")
@clause("RT-08.2-06")
@pytest.mark.parametrize("kept_under", [LOOSE, FAST], ids=["loose", "fast"])
@pytest.mark.parametrize("by_flag", [False, True], ids=["policy", "flag"])
def test_a_deterministic_launch_ignores_entries_of_another_policy(impl, check, tmp_path, kept_under, by_flag):
    """What was compiled under a policy without determinism is not used, whether policy or flag demands it."""
    image = image_of(impl, check)
    session = governed(caching(impl, check, tmp_path), kept_under)
    check.equal(filled(session, image), 7, "the first result")
    check.equal([each["policy"] for each in entries(session)], [kept_under], "the policies of the entries")
    ended(session)
    for number in range(2):
        session = governed(caching(impl, check, tmp_path), kept_under if by_flag else STRICT)
        check.equal(filled(session, image, flags=DETERMINISTIC if by_flag else 0), 7, "the result")
        hits, misses = used(session)
        if number == 0:
            check.true(hits == 0 and misses > 0, "the entry of another policy is ignored", (hits, misses))
        else:
            check.true(hits > 0 and misses == 0, "an entry of the same policy is found", (hits, misses))
        ended(session)


@feature("cache-probe", "env-vars")
@clause("RT-08.2-06")
@pytest.mark.parametrize("switch", ["stableReductions", "rngStateless", "allowFastMath"])
def test_every_switch_of_a_policy_counts(impl, check, tmp_path, switch):
    """Two deterministic policies that differ in one switch do not share entries."""
    image = image_of(impl, check)
    for policy in (STRICT, STRICT | {switch: 1 - STRICT[switch]}):
        session = governed(caching(impl, check, tmp_path), policy)
        check.equal(filled(session, image), 7, "the result")
        hits, misses = used(session)
        check.true(hits == 0 and misses > 0, "nothing is found under a new policy", (hits, misses))
        ended(session)


PRODUCTS = """module products {
  kernel plain(a: tensor<16x16xfp32>, b: tensor<16x16xfp32>) { b = a @ a; }
  kernel mixed(a: tensor<16x16xfp32>, b: tensor<16x16xfp32>) { b = a @ a; }
}
"""


@clause("RT-08.2-06")
@level("strict", "deterministic")
@pytest.mark.parametrize("fresh", [False, True], ids=["one context", "another context"])
def test_a_launch_without_determinism_leaves_no_trace_in_later_bits(impl, check, fresh):
    """The same product, once launched deterministically only, once after launches under fast math: the same bits."""
    source = counted("fp32", (16, 16), seed=611, exponents=(-8, 8)).data
    image = compiled(impl, check, PRODUCTS)

    def product(session, name, flags):
        module = session.ask("tessModuleLoad", context=session.context, image=image)["module"]
        kernel = session.kernel_of(module, name)
        a, b = session.upload(source), session.upload(bytes(len(source)))
        found = []
        for flag in flags:
            session.launch(kernel, packed(("ptr", a), ("ptr", b)), flags=flag)
            found.append(session.download(b, len(source)).hex())
        return found[-1]

    def session_of():
        return governed(opened(impl, check), FAST)

    wanted = product(session_of(), "plain", [DETERMINISTIC])
    session = session_of()
    if fresh:
        product(session, "mixed", [0])
        session = session_of()
        found = product(session, "mixed", [DETERMINISTIC])
    else:
        found = product(session, "mixed", [0, DETERMINISTIC])
    check.equal(found, wanted, "the bits of the deterministic launch")


# Poisoned and corrupt entries


@feature("env-vars")
@clause("RT-15-06")
def test_a_kernel_of_the_same_name_in_another_program_is_another(impl, check, tmp_path):
    """Same name, same parameters, other IR: the hash of the IR keeps the entries apart."""
    one, two = (
        f"module m {{ kernel fill(N: int32, v: int32, x: tensor<Nxint32>) {{ x[0:N] = v + {n}; }} }}" for n in (1, 2)
    )
    for source, expected in ((one, 8), (two, 9), (one, 8), (two, 9)):
        session = caching(impl, check, tmp_path)
        check.equal(filled(session, image_of(impl, check, source)), expected, "what the kernel has written")
        ended(session)
    session = caching(impl, check, tmp_path)
    check.equal(len(entries(session)), 2, "the number of entries")


@feature("env-vars")
@clause("RT-15-06")
def test_an_entry_put_in_the_place_of_another_is_never_run(impl, check, tmp_path):
    """The file of another program under the name of one: its kernel does not run, whatever is reported."""
    one, two = (
        f"module m {{ kernel fill(N: int32, v: int32, x: tensor<Nxint32>) {{ x[0:N] = v + {n}; }} }}" for n in (1, 2)
    )
    paths: list[Path] = []
    for source in (one, two):
        session = caching(impl, check, tmp_path)
        filled(session, image_of(impl, check, source))
        paths.extend(Path(each["path"]) for each in entries(session) if Path(each["path"]) not in paths)
        ended(session)
    first, second = paths
    first.write_bytes(second.read_bytes())
    answer = first_refusal(impl, check, tmp_path, image_of(impl, check, one))
    refused(check, answer, "TESS_ERR_CACHE_CORRUPT")


DAMAGES = {
    "the first byte": lambda data: bytes([data[0] ^ 255]) + data[1:],
    "a byte of the first quarter": lambda data: altered(data, len(data) // 4),
    "the middle byte": lambda data: altered(data, len(data) // 2),
    "one bit of the middle": lambda data: altered(data, len(data) // 2, 1),
    "a byte of the last quarter": lambda data: altered(data, 3 * len(data) // 4),
    "the last byte": lambda data: altered(data, len(data) - 1),
    "half of it missing": lambda data: data[: len(data) // 2],
    "the last byte missing": lambda data: data[:-1],
    "a byte too many": lambda data: data + b"\0",
    "empty": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
    "something else": lambda data: b"not an entry\n" * 8,
}


def altered(data: bytes, place: int, bits: int = 255) -> bytes:
    """One byte other than it was."""
    return data[:place] + bytes([data[place] ^ bits]) + data[place + 1 :]


@feature("env-vars")
@clause("RT-19.A-11")
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_reported(impl, check, tmp_path, damage):
    """The call that reads it says TESS_ERR_CACHE_CORRUPT; once the file is gone, all is well (AMB-RT-12)."""
    image = image_of(impl, check)
    session = caching(impl, check, tmp_path)
    check.equal(filled(session, image), 7, "the first result")
    (entry,) = entries(session)
    ended(session)
    path = Path(entry["path"])
    path.write_bytes(damage(path.read_bytes()))
    refused(check, first_refusal(impl, check, tmp_path, image), "TESS_ERR_CACHE_CORRUPT")
    path.unlink(missing_ok=True)
    hits, misses = use(impl, check, tmp_path, image)
    check.true(hits == 0 and misses > 0, "without the file it is compiled again", (hits, misses))
    check.equal(use(impl, check, tmp_path, image)[1], 0, "the misses of the use after that")
