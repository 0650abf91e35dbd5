"""A loaded library as an adapter: its methods follow from its functions, and what it cannot say from what came with it.

What stands here for itself: the Hello, the reset, host memory, the devices of a description, and the header.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tessera_conformance.adapter import MalformedAnswer
from tessera_conformance.interface.c_declarations import c_functions
from tessera_conformance.transports.cabi.carriers import CMethod, decoded, stopped
from tessera_conformance.transports.cabi.clean_up import LiveObjects
from tessera_conformance.transports.cabi.description import laid_over
from tessera_conformance.transports.cabi.header import constants
from tessera_conformance.transports.cabi.host_memory import HostMemory
from tessera_conformance.transports.cabi.library import Library

__all__ = ["CabiAdapter"]

HEADER = "c-abi"
"""The feature of a header that can be read."""
HOST_MEMORY = "host-memory"
"""The feature of what stands here for every library."""


class CabiAdapter:
    """Answers with a library's functions; `header` is a text, `description` as `read_description` gives it."""

    def __init__(self, library: Library, name: str, header: str | None, description: Mapping[str, Any]) -> None:
        self._library, self._name, self._header = library, name, header
        self._description = dict(description)
        self._devices = self._description.pop("devices", None)
        self._memory = HostMemory()
        self._live = LiveObjects()
        self._methods: dict[str, Callable[..., Any]] = {
            method.replace(".", "_", 1): CMethod(library, function)
            for method, function in c_functions().items()
            if library.has(function.name)
        }
        self._add_own()
        vars(self).update(self._methods)  # where `invoke` looks first

    def _add_own(self) -> None:
        """The methods that are no function of the library, and those whose effect is remembered."""
        methods = self._methods
        methods["runtime_tessxHostMemory"] = lambda *, bytes, **_: {"hostPtr": self._memory.allocate(bytes)}
        methods["runtime_tessxHostRead"] = self._host_read
        methods["runtime_tessxHostWrite"] = self._host_write
        if self._devices is not None and "runtime_tessxDevices" not in methods:
            methods["runtime_tessxDevices"] = lambda **_: {"devices": self._devices}
        if self._header is not None:
            methods["abi_header"] = lambda **_: {"text": self._header}
            methods["abi_constants"] = lambda **_: {"constants": constants(self._header or "")}
        methods.update(self._live.watched(methods))
        self._watch("runtime_tessHostAlloc", lambda given, result: self._memory.add(result["hostPtr"], given["bytes"]))
        self._watch("runtime_tessHostFree", lambda given, result: self._memory.remove(given["hostPtr"]))

    def _watch(self, name: str, effect: Callable[[Mapping[str, Any], Mapping[str, Any]], Any]) -> None:
        """After each success of a method, remember its effect."""
        method = self._methods.get(name)
        if method is None:
            return

        def watched(**given: Any) -> Any:
            result = method(**given)
            effect(given, result)
            return result

        self._methods[name] = watched

    # The session

    def hello(self) -> dict[str, Any]:
        """What follows from the file and its functions; what the library says, then the description, is laid over it.

        Raises:
            MalformedAnswer: `tessxHello` failed or gave no JSON object.
        """
        derived = {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": self._name, "version": "unknown"},
            "documents": ["runtime_abi"],
            "capabilities": dict.fromkeys(self._features(), "enforced"),
        }
        hello = laid_over(laid_over(derived, self._said()), self._description)
        self._remove_methods_without_claim(hello.get("capabilities"))
        return hello

    def _remove_methods_without_claim(self, capabilities: Any) -> None:
        """Answer no method of a feature that the library or the description says to be unsupported."""
        for method, function in c_functions().items():
            feature, name = function.method.feature, method.replace(".", "_", 1)
            if isinstance(capabilities, dict) and capabilities.get(feature) == "unsupported" and name in self._methods:
                del self._methods[name]
                vars(self).pop(name, None)

    def _features(self) -> list[str]:
        """The features all of whose methods are there."""
        by_feature: dict[str, list[str]] = {}
        for name, function in c_functions().items():
            feature = function.method.feature
            if feature and "{" not in feature:
                by_feature.setdefault(feature, []).append(name.replace(".", "_", 1))
        whole = [feature for feature, names in by_feature.items() if all(name in self._methods for name in names)]
        return sorted({*whole, HOST_MEMORY, *([HEADER] if self._header is not None else [])})

    def _said(self) -> Mapping[str, Any]:
        if not self._library.has("tessxHello"):
            return {}
        status, text = self._library.call_for_text("tessxHello", ())
        if status != 0:
            raise MalformedAnswer(f"tessxHello gave {stopped(self._library, 'tessxHello', status)}")
        return decoded("tessxHello", text)

    def session_reset(self, **_: Any) -> dict[str, Any]:
        """Nothing, once `tessxReset`, or else the end of all that lives, has succeeded; host memory is freed last.

        Raises:
            Refusal: it could not be done. Nothing was freed, since queued work may use it, and no case may follow.
        """
        if self._library.has("tessxReset"):
            status = self._library.call("tessxReset", ())
            if status != 0:
                raise stopped(self._library, "tessxReset", status)
            self._live.forget()
        else:
            self._live.end(self._methods)
        self._memory.forget()
        return {}

    # Host memory

    def _host_read(self, *, hostPtr: int, bytes: int, **_: Any) -> dict[str, Any]:  # noqa: N803
        return {"data": self._memory.read(hostPtr, bytes).hex()}

    def _host_write(self, *, hostPtr: int, data: str, **_: Any) -> dict[str, Any]:  # noqa: N803
        self._memory.write(hostPtr, bytes.fromhex(data))
        return {}
