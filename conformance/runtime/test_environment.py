"""The environment variables of Appendix C, and what wins where several sources speak (AMB-RT-31, AMB-RT-46, -166)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.cache import caching, filled, image_of
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    DETERMINISTIC,
    DTYPE_IDS,
    MAX,
    compiled,
    opened,
    refused,
)
from tessera_conformance.chapters.runtime.kit.policies import LOOSE, STRICT
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected

VALUES = [
    *(
        pytest.param("TESS_NUMERICS", "numerics", value, value, marks=clause("RT-19.C-01"))
        for value in ("strict", "promote", "downcast")
    ),
    pytest.param("TESS_DETERMINISTIC", "deterministic", "1", True, marks=clause("RT-19.C-02")),
    pytest.param("TESS_AUTOTUNE", "autotune", "0", False, marks=clause("RT-19.C-04")),
    pytest.param("TESS_AUTOTUNE", "autotune", "1", True, marks=clause("RT-19.C-04")),
    *(
        pytest.param("TESS_LOG_LEVEL", "log_level", value, value, marks=clause("RT-19.C-05"))
        for value in ("info", "debug", "trace")
    ),
]
UNKNOWN = [
    pytest.param("TESS_NUMERICS", "numerics", "exact", marks=clause("RT-19.C-01")),
    pytest.param("TESS_AUTOTUNE", "autotune", "2", marks=clause("RT-19.C-04")),
    pytest.param("TESS_LOG_LEVEL", "log_level", "everything", marks=clause("RT-19.C-05")),
]
SOURCE = "module settings { kernel nothing() { } }"


def under(impl, check, ranks=1, **variables):
    """A context that finds these variables, and no others."""
    check.returns(impl.runtime.tessxSetEnvironment(variables=variables), "the environment is set")
    return opened(impl, check, ranks)


def settings(session):
    """Return the settings that a context has read."""
    return session.ask("tessxSettings", context=session.context)


@pytest.mark.parametrize(("variable", "setting", "value", "expected"), VALUES)
def test_a_context_finds_the_value_of_a_variable(impl, check, variable, setting, value, expected):
    """The context has the value, and finds the other variables unset."""
    actual = settings(under(impl, check, **{variable: value}))
    nothing = dict.fromkeys(("numerics", "deterministic", "cache_dir", "autotune", "log_level"))
    check.equal(actual, nothing | {setting: expected}, "what the context found")


@clause("RT-19.C-01", "RT-19.C-04", "RT-19.C-05")
def test_a_context_keeps_what_it_found(impl, check):
    """Variables that change later are those of later contexts (AMB-RT-71)."""
    first = under(impl, check, TESS_NUMERICS="promote", TESS_AUTOTUNE="1", TESS_LOG_LEVEL="info")
    second = under(impl, check, TESS_NUMERICS="downcast", TESS_AUTOTUNE="0", TESS_LOG_LEVEL="debug")
    third = under(impl, check)
    actual = [
        tuple(settings(context)[name] for name in ("numerics", "autotune", "log_level"))
        for context in (first, second, third)
    ]
    expected = [("promote", True, "info"), ("downcast", False, "debug"), (None, None, None)]
    check.equal(actual, expected, "what each context found")


@pytest.mark.parametrize(("variable", "setting", "value"), UNKNOWN)
def test_another_value_is_never_taken_for_a_known_one(impl, check, variable, setting, value):
    """tessInit refuses it with TESS_ERR_INVALID_VALUE, or the variable counts as unset (AMB-RT-166)."""
    check.returns(impl.runtime.tessxSetEnvironment(variables={variable: value}), "the environment is set")
    answer = impl.runtime.tessInit()
    if isinstance(answer, Rejected):
        check.status(answer, "TESS_ERR_INVALID_VALUE")
        return
    context = check.returns(answer, "tessInit succeeds")["context"]
    actual = check.returns(impl.runtime.tessxSettings(context=context), "tessxSettings succeeds")
    check.equal(actual[setting], None, "the setting of an unknown value")


# Determinism, and the sources of a policy


@clause("RT-19.C-02")
def test_the_environment_asks_for_determinism(impl, check):
    """Without a policy of its own, a context under TESS_DETERMINISTIC=1 is deterministic."""
    session = under(impl, check, TESS_DETERMINISTIC="1")
    policy = session.ask("tessGetNumericsPolicy", context=session.context)["policy"]
    check.equal(policy["deterministic"], 1, "the policy of the context")


NUMERICS = {
    "strict": {"stableReductions": 1, "deterministic": 1, "allowFastMath": 0},
    "promote": {"deterministic": 1, "allowFastMath": 0},
    "downcast": {"deterministic": 0, "allowFastMath": 1},
}
"""The switches that a value of TESS_NUMERICS sets (AMB-RT-31)."""


def switches(policy, of):
    """Those of a policy that are asked for."""
    return {name: policy[name] for name in of}


@clause("RT-19.C-01")
@pytest.mark.parametrize("value", NUMERICS)
@pytest.mark.parametrize("deterministic", [None, "0", "1"], ids=["alone", "not-deterministic", "deterministic"])
def test_the_environment_chooses_the_policy_of_a_context(impl, check, value, deterministic):
    """TESS_NUMERICS, with TESS_DETERMINISTIC beside it; a policy that is set then is the one in force.

    As AMB-RT-31 and AMB-RT-46 have it.
    """
    beside = {} if deterministic is None else {"TESS_DETERMINISTIC": deterministic}
    expected = NUMERICS[value] | ({} if deterministic is None else {"deterministic": int(deterministic)})
    session = under(impl, check, TESS_NUMERICS=value, **beside)
    actual = session.ask("tessGetNumericsPolicy", context=session.context)["policy"]
    if switches(actual, expected) != expected:
        unset = under(impl, check, **beside)
        same = actual == unset.ask("tessGetNumericsPolicy", context=unset.context)["policy"]
        strict = under(impl, check, TESS_NUMERICS="strict")
        selected = strict.ask("tessGetNumericsPolicy", context=strict.context)["policy"]
        alone = same and switches(selected, NUMERICS["strict"]) == NUMERICS["strict"]
        check.reading("AMB-RT-31", "strict selects the strict profile alone", value != "strict" and alone)
        check.reading("AMB-RT-31", "casting policies that change no policy", same)
    check.equal(switches(actual, expected), expected, "the policy of the context")
    session.set_policy(LOOSE)
    actual = session.ask("tessGetNumericsPolicy", context=session.context)["policy"]
    check.equal(actual, LOOSE, "the policy that was set")


@feature("descriptor-access")
@clause("RT-19.C-01")
@pytest.mark.parametrize("value", NUMERICS)
@pytest.mark.parametrize("module", [None, LOOSE, STRICT], ids=["plain", "loose-module", "strict-module"])
def test_launches_are_under_the_policy_of_the_environment_unless_their_module_has_one(impl, check, value, module):
    """A launch carries the policy that governs it (AMB-RT-31, AMB-RT-46)."""
    session = under(impl, check, TESS_NUMERICS=value)
    options = {} if module is None else {"policy": module}
    session.launch(session.kernel("nothing", SOURCE, **options))
    (carried,) = session.ask("tessxDescriptors", stream=session.stream)["descriptors"]
    expected = module or NUMERICS[value]
    check.equal(switches(carried["policy"], expected), expected, "the policy of the launch")


@feature("descriptor-access")
@clause("RT-19.C-02")
@pytest.mark.parametrize("environment", [None, "0", "1"], ids=["unset", "0", "1"])
@pytest.mark.parametrize("module", [None, LOOSE, STRICT], ids=["plain", "loose-module", "strict-module"])
@pytest.mark.parametrize("policy", [None, LOOSE, STRICT], ids=["no-policy", "loose-policy", "strict-policy"])
@pytest.mark.parametrize("flags", [0, DETERMINISTIC], ids=["no-flag", "flag"])
def test_the_nearest_source_of_a_policy_wins(impl, check, environment, module, policy, flags):
    """The flag of a launch, then the context's policy, then the module's, then the environment (AMB-RT-46).

    Where no source speaks, what the implementation does is its own affair.
    """
    session = under(impl, check, **({} if environment is None else {"TESS_DETERMINISTIC": environment}))
    if policy is not None:
        session.set_policy(policy)
    options = {} if module is None else {"policy": module}
    session.launch(session.kernel("nothing", SOURCE, **options), flags=flags)
    (carried,) = session.ask("tessxDescriptors", stream=session.stream)["descriptors"]
    nearest = policy or module
    actual = carried["policy"]
    lifted = environment == "0" and policy == STRICT and not flags and actual == STRICT | {"deterministic": 0}
    check.reading("AMB-RT-46", "environment wins, as a user override", lifted)
    if flags:
        check.equal(actual["deterministic"], 1, "the flag demands determinism")
    elif nearest is not None:
        check.equal(actual["deterministic"], nearest["deterministic"], "what the nearest source says")
    elif environment is not None:
        check.equal(actual["deterministic"], int(environment), "what the environment says")
    else:
        check.true(actual["deterministic"] in (0, 1), "a switch is 0 or 1", actual)
    if nearest is not None:
        others = {name: actual[name] for name in ("stableReductions", "rngStateless", "allowFastMath")}
        check.equal(others, {name: nearest[name] for name in others}, "the other switches are those of the source")


# The cache directory


@feature("cache-probe")
@clause("RT-19.C-03")
def test_results_are_kept_in_the_directory_that_is_named(impl, check, tmp_path):
    """Each of two contexts writes its own, which its setting names; no file of the one is in the other (AMB-RT-71)."""
    image = image_of(impl, check)
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
        session = caching(impl, check, directory)
        check.equal(settings(session)["cache_dir"], str(directory), "the directory that the context found")
        check.equal([path.name for path in directory.iterdir() if not path.name.startswith(".")], [], "files before")
        check.equal(filled(session, image), 7, "the result of a launch")
        files = [path for path in directory.rglob("*") if path.is_file()]
        check.true(bool(files), "the directory has files", [file.name for file in files])
    session = caching(impl, check, first)
    paths = [entry["path"] for entry in session.ask("tessxCacheEntries")["entries"]]
    check.true(any(path.startswith(str(first)) for path in paths), "entries of the first directory", paths)


@feature("cache-probe")
@clause("RT-19.C-03")
def test_a_directory_that_is_not_named_is_left_alone(impl, check, tmp_path):
    """Once the variable is unset, a launch of a later context adds nothing to it (AMB-RT-71)."""
    image = image_of(impl, check)
    session = caching(impl, check, tmp_path)
    filled(session, image)
    kept = sorted(path.name for path in tmp_path.rglob("*"))
    session = under(impl, check)
    check.equal(settings(session)["cache_dir"], None, "the directory of a context that finds none")
    check.equal(filled(session, image, count=16), 7, "the result of a launch")
    check.equal(sorted(path.name for path in tmp_path.rglob("*")), kept, "the files of the directory")


# Autotuning and the log


@feature("algorithm-control")
@clause("RT-19.C-04")
@pytest.mark.parametrize(("value", "tuned"), [("0", False), ("1", True)])
def test_the_autotuner_chooses_where_it_is_on(impl, check, value, tuned):
    """A collective without a hint has its algorithm from the autotuner exactly where TESS_AUTOTUNE is 1."""
    session = under(impl, check, 4, TESS_AUTOTUNE=value)
    request = {"collective": "all_reduce", "count": 4096, "dtype": DTYPE_IDS["fp32"], "axis": "dp"}
    plan = session.ask("tessxCollectivePlan", mesh=session.mesh, **request)
    check.equal(plan["source"] == "autotuner", tuned, "whether the autotuner has chosen")


@clause("RT-19.C-05")
def test_more_is_logged_the_higher_the_level(impl, check):
    """At info only info, at debug no trace; at trace the work of a context leaves lines; unset, there are none."""
    allowed = {None: [], "info": ["info"], "debug": ["info", "debug"], "trace": ["info", "debug", "trace"]}
    counts = []
    image = compiled(impl, check, SOURCE)
    for level, levels in allowed.items():
        before = len(check.returns(impl.runtime.tessxLog(), "tessxLog succeeds")["lines"])
        session = under(impl, check, **({} if level is None else {"TESS_LOG_LEVEL": level}))
        module = session.ask("tessModuleLoad", context=session.context, image=image)["module"]
        session.launch(session.kernel_of(module, "nothing"))
        session.synchronize()
        refused(check, session.attempt("tessMalloc", mesh=session.mesh, bytes=1 << 62), "TESS_ERR_OUT_OF_MEMORY")
        lines = check.returns(impl.runtime.tessxLog(), "tessxLog succeeds")["lines"][before:]
        strange = [line for line in lines if line["level"] not in levels]
        check.equal(strange, [], f"lines that {level} does not ask for")
        counts.append(len(lines))
        session.close()
    check.true(counts == sorted(counts) and counts[-1] > 0, "the higher the level, the more lines", counts)


@feature("algorithm-control")
@clause("RT-19.C-04")
def test_autotuning_changes_no_result(impl, check):
    """The same integers are summed with it and without."""
    for value in ("0", "1"):
        session = under(impl, check, 4, TESS_AUTOTUNE=value)
        pointer = session.upload(b"\x05\0\0\0" * 64)
        whole = {"mesh": session.mesh, "buffer": pointer, "count": 64, "dtype": DTYPE_IDS["int32"]}
        session.ask("tessAllReduce", **whole, op=MAX, axis="dp", stream=session.stream)
        check.equal(session.download(pointer, 256), b"\x05\0\0\0" * 64, "the largest of equal numbers")
