"""Entries of other policies, of other programs, and damaged ones (runtime specification, 8.2, 15, 19.A; AMB-RT-22)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tessera_conformance.chapters.runtime.kit.cache import (
    caching,
    ended,
    entries,
    filled,
    first_refusal,
    image_of,
    use,
    used,
)
from tessera_conformance.chapters.runtime.kit.encoding import packed
from tessera_conformance.chapters.runtime.kit.mesh_session import DETERMINISTIC, compiled, opened, refused
from tessera_conformance.chapters.runtime.kit.policies import FAST, LOOSE, STRICT
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.vectors.building import counted


def governed(session, policy):
    """The context under a policy."""
    session.set_policy(policy)
    return session


# Other policies


@feature("cache-probe", "env-vars")
@clause("RT-08.2-06")
@pytest.mark.parametrize("kept_under", [LOOSE, FAST], ids=["loose", "fast"])
@pytest.mark.parametrize("by_flag", [False, True], ids=["policy", "flag"])
def test_a_deterministic_launch_ignores_entries_of_another_policy(impl, check, tmp_path, kept_under, by_flag):
    """Code compiled without determinism is not used where the policy or the flag demands determinism."""
    image = image_of(impl, check)
    session = governed(caching(impl, check, tmp_path), kept_under)
    check.equal(filled(session, image), 7, "the first result")
    check.equal([entry["policy"] for entry in entries(session)], [kept_under], "the policies of the entries")
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
        actual = []
        for flag in flags:
            session.launch(kernel, packed(("ptr", a), ("ptr", b)), flags=flag)
            actual.append(session.download(b, len(source)).hex())
        return actual[-1]

    def session_of():
        return governed(opened(impl, check), FAST)

    expected = product(session_of(), "plain", [DETERMINISTIC])
    session = session_of()
    if fresh:
        product(session, "mixed", [0])
        session = session_of()
        actual = product(session, "mixed", [DETERMINISTIC])
    else:
        actual = product(session, "mixed", [0, DETERMINISTIC])
    check.equal(actual, expected, "the bits of the deterministic launch")


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
        paths.extend(Path(entry["path"]) for entry in entries(session) if Path(entry["path"]) not in paths)
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
    """The call that reads it says TESS_ERR_CACHE_CORRUPT; once the file is gone, all is well (AMB-RT-12, AMB-RT-71)."""
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
