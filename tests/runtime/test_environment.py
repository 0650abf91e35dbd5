"""What the environment variables say to a new context (runtime spec, Appendix C)."""

from __future__ import annotations

import pytest

from tessera_reference.abi.status import Failure, Status
from tessera_reference.runtime.api import Runtime
from tessera_reference.runtime.contexts import Environment, read_environment


def test_nothing_set_says_nothing() -> None:
    assert read_environment({}) == Environment(None, None, None, None, None)


def test_all_of_them() -> None:
    variables = {
        "TESS_NUMERICS": "downcast",
        "TESS_DETERMINISTIC": "0",
        "TESS_CACHE_DIR": "/somewhere",
        "TESS_AUTOTUNE": "1",
        "TESS_LOG_LEVEL": "trace",
        "PATH": "/bin",
    }
    assert read_environment(variables) == Environment("downcast", False, "/somewhere", True, "trace")


def test_an_empty_directory_is_none() -> None:
    assert read_environment({"TESS_CACHE_DIR": ""}).cache_dir is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TESS_NUMERICS", "loose"),
        ("TESS_NUMERICS", ""),
        ("TESS_DETERMINISTIC", "yes"),
        ("TESS_AUTOTUNE", "2"),
        ("TESS_LOG_LEVEL", "INFO"),
    ],
)
def test_another_value_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(Failure, match=f"{name} is '{value}'") as caught:
        read_environment({name: value})
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_a_context_keeps_what_it_found_and_the_next_finds_what_is_new() -> None:
    runtime = Runtime(environment={"TESS_DETERMINISTIC": "0"})
    _, first = runtime.tessInit()
    runtime.environment = {"TESS_LOG_LEVEL": "info"}
    _, second = runtime.tessInit()
    assert runtime.tessxSettings(first)[1] == Environment(deterministic=False)
    assert runtime.tessxSettings(second)[1] == Environment(log_level="info")
    assert [each.level for each in runtime.tessxLog()] == ["info"]
