"""A C program that makes the calls of one case with the functions of `tessera.h` alone, and judges the results.

It needs the header and the library, but neither Python nor the suite. The declaration of a function says how its values
are written in C (`interface`). This module has no code for single functions, except for host memory,
which the program allocates itself. Calls of a compiler are left out, since their image is in the program.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tessera_conformance.interface import ABSENT, CFunction, Input, Output, c_functions
from tessera_conformance.reports.reproduce_template import at, unsupported

HEADER = Path(__file__).resolve().parent / "c_program.h"
"""The beginning of every program: printing, and judging bytes and statuses."""
BUFFER = 1 << 16
"""The bytes of a buffer for a text or for data."""
_BYTES_A_LINE = 24
_ARRAYS = ("data", "memory")


def c_program(content: Mapping[str, Any]) -> str:
    """Return the program of a case, from the content of its script."""
    writer = _Writer(content["requests"], content["outcomes"], content["compiler"] is not None)
    lines = [
        f"/* {content['case']}",
        f" * {_in_comment(content['title'])}",
        f" * clauses: {', '.join(content['clauses'])}",
        f" * then: {content['verdict']}: {_in_comment(content['reason'])}",
        " */",
        HEADER.read_text(encoding="utf-8"),
        *writer.extensions(),
        "",
        "static int once(void) {",
        "  tessStatus_t status;",
    ]
    for number, request in enumerate(content["requests"]):
        lines += [f"  {line}" for line in writer.call(number, request["method"], request["params"])]
        checks = [check for check in content["checks"] if check["exchange"] == number]
        lines += [f"  {line}" for check in checks for line in writer.judge(number, check)]
    if content["unseen"]:
        lines.append("  compared = 0;")
    for check in content["suite_only"]:
        lines.append(f"  only_the_suite({_quoted(check['what'])});")
    lines += ["  return conclude();", "}", "", "int main(int count, char** words) {"]
    return "\n".join([*lines, f"  return count > 1 ? once() : repeated(words[0], {content['tries']}, once);", "}", ""])


class _Writer:
    """Writes calls as C statements, each with variables of its own."""

    def __init__(self, requests: Sequence[Mapping[str, Any]], outcomes: Sequence[Any], compiled: bool) -> None:
        self._requests, self._outcomes = requests, outcomes
        self._compiled = compiled
        self._arrays = 0

    def _function_of(self, number: int) -> CFunction | None:
        """Return the function that a request calls; None for another compiler's call or a lacking extension."""
        method = self._requests[number]["method"]
        function = c_functions().get(method)
        lacking = function is not None and function.extension and "unsupported" in self._outcomes[number]
        return None if lacking or (self._compiled and method == "abi.compile") else function

    def extensions(self) -> list[str]:
        """Return the declarations of the extensions that are called."""
        functions = filter(None, map(self._function_of, range(len(self._requests))))
        return list(dict.fromkeys(function.prototype for function in functions if function.extension))

    def call(self, number: int, method: str, params: Mapping[str, Any]) -> Iterator[str]:
        """Yield the lines of a call; a comment for a request that calls no function of the library."""
        yield ""
        own = getattr(self, f"_{method.partition('.')[2]}", None)
        if own is not None:
            yield from own(number, params)
        elif (function := self._function_of(number)) is not None:
            yield from self._function(number, function, {name: self._plain(value) for name, value in params.items()})
        else:
            yield f"/* {method}: no function of the library */"

    # Host memory is the program's own

    def _tessxHostMemory(self, number: int, params: Mapping[str, Any]) -> Iterator[str]:  # noqa: N802
        yield f"void* r{number}_hostPtr = calloc(1, {max(1, params['bytes'])});"

    def _tessxHostWrite(self, number: int, params: Mapping[str, Any]) -> Iterator[str]:  # noqa: N802
        data, source = params["data"], f"d{number}"
        if "$from" in data:  # bytes of an earlier answer, as many as it had then
            earlier, path = data["$from"]
            size, source = _length(at(self._outcomes[earlier]["returned"], path)), f"r{earlier}_{path[0]}"
        else:
            size = _length(data)
            yield from self._array(source, data)
        yield f"memcpy({self._expression('void*', params['hostPtr'])}, {source}, {size});"

    def _tessxHostRead(self, number: int, params: Mapping[str, Any]) -> Iterator[str]:  # noqa: N802
        yield f"const unsigned char* r{number}_data = {self._expression('const void*', params['hostPtr'])};"
        yield f"(void)r{number}_data;"
        yield from self._as_then(number, "data", params["bytes"])

    def _as_then(self, number: int, name: str, size: int | None = None) -> Iterator[str]:
        """Yield a comparison of the data that a call returned with those of then, if it returned some."""
        then = self._outcomes[number].get("returned", {}).get(name)
        if isinstance(then, str):
            yield from self._array(f"then{number}", then)
            yield f"as_then(r{number}_{name}, then{number}, {len(then) // 2 if size is None else size});"

    # A function of the library

    def _function(self, number: int, function: CFunction, params: Mapping[str, Any]) -> Iterator[str]:
        arguments: list[str] = []
        before: Any = None
        for position in function.positions:
            if isinstance(position, Output):
                declared, argument = self._output(number, position, params.get("null", ()))
                yield from declared
                arguments += argument
            else:
                value = params.get(position.name)
                if _is_array(position, value):
                    yield from self._array(f"a{number}_{position.name}", value)
                arguments += self._input(number, position, params, before)
                before = value
        yield f"status = {function.name}({', '.join(arguments)});"
        returned = "returned" in self._outcomes[number]
        yield f'told("{function.name}", status, {"TESS_OK" if returned else -1});'
        for position in function.positions:
            if isinstance(position, Output) and position.form == "data":
                yield from self._as_then(number, position.name)

    def _plain(self, value: Any) -> Any:
        """Return a value; one bound to a request without a C function is replaced by the recorded value."""
        if not isinstance(value, Mapping) or "$from" not in value:
            return value
        number, path = value["$from"]
        is_own = self._requests[number]["method"].startswith("runtime.tessxHost")
        called = is_own or self._function_of(number) is not None
        return value if called else at(self._outcomes[number]["returned"], path)

    def _input(self, number: int, position: Input, params: Mapping[str, Any], before: Any) -> list[str]:
        c_type, name, form = position.parameters[0].rpartition(" ")[0], position.name, position.form
        sized = len(position.parameters) == 2
        if name not in params:
            if sized:
                return ["NULL", "0"]
            if form == "integer":
                return [str(_length(before)) if before is not None else f"({ABSENT + 1}LL - 1)"]
            return ["0" if form in ("bool", "number") else "NULL"]
        value = params[name]
        if _is_array(position, value):
            written = f"a{number}_{name}"
        elif form == "json":
            written = _quoted(json.dumps(value, separators=(",", ":")))
        else:
            written = self._expression(c_type, value)
        return [written, str(_length(value))] if sized else [written]

    def _output(self, number: int, position: Output, null: Sequence[str]) -> tuple[list[str], list[str]]:
        if position.form in ("data", "text", "json"):
            declared = [f"static unsigned char r{number}_{position.name}[{BUFFER}];", f"size_t n{number} = 0;"]
            cast = "(char*)" if position.form != "data" else ""
            return declared, [f"{cast}r{number}_{position.name}", f"{BUFFER}", f"&n{number}"]
        if position.name in null:
            return [], ["NULL"]
        c_type = position.parameters[0].rpartition(" ")[0].rpartition("*")[0].strip()
        zero = "{0}" if position.form == "structure" else "0"
        return [f"{c_type} r{number}_{position.name} = {zero};"], [f"&r{number}_{position.name}"]

    def _expression(self, c_type: str, value: Any) -> str:
        """Return a value as C writes it."""
        if isinstance(value, Mapping) and "$from" in value:
            (number, path), plus = value["$from"], value["$plus"]
            variable = f"r{number}_{path[0]}"
            return f"(void*)((char*){variable} + {plus})" if plus else variable
        if isinstance(value, Mapping):
            members = ", ".join(f".{name} = {self._expression('', item)}" for name, item in value.items())
            bare = c_type.removeprefix("const ").rstrip("*").strip()
            return f"{'&' if c_type.endswith('*') else ''}({bare}){{{members}}}"
        if isinstance(value, list):
            items = ", ".join(self._expression("", item) for item in value)
            return f"(const int[]){{{items or 0}}}" if c_type else f"{{{items}}}"
        if value is None:
            return "NULL"
        if isinstance(value, str):
            return _quoted(value)
        if isinstance(value, bool | float):
            return str(value).lower() if isinstance(value, float) else str(int(value))
        if c_type.endswith("*") or (c_type.endswith("_t") and c_type not in ("size_t", "int64_t")):
            return f"({c_type})(uintptr_t){value & (1 << 64) - 1:#x}ull" if value else "NULL"
        suffix = "ull" if value >= 1 << 31 else "ll" if value < -(1 << 31) else ""
        return f"({c_type}){value}{suffix}" if c_type and c_type != "int" else f"{value}{suffix}"

    def _array(self, name: str, value: Any) -> Iterator[str]:
        """Yield an array of bytes; the addresses in it are put in when the program runs."""
        digits = value["$bytes"] if isinstance(value, Mapping) else value
        data = bytes.fromhex(digits)
        rows = [data[start : start + _BYTES_A_LINE] for start in range(0, len(data), _BYTES_A_LINE)]
        if len(data) > _BYTES_A_LINE and len(set(data)) == 1 and data[0] == 0:
            yield f"static unsigned char {name}[{len(data)}];"
        else:
            yield f"static unsigned char {name}[] = {{"
            yield from ("  " + ", ".join(map(str, row)) + "," for row in rows or [b"\0"])
            yield "};"
        for place, source in value["$addresses"] if isinstance(value, Mapping) else ():
            yield f"put_address({name} + {place}, {self._expression('void*', source)});"

    # Checks

    def judge(self, number: int, check: Mapping[str, Any]) -> Iterator[str]:
        """Yield the lines of a check; `only_the_suite` for a check that the program cannot make."""
        what = _quoted(check["what"])
        function = self._function_of(number) is not None
        match check["how"]:
            case "returned" if function:
                lacking = "" if unsupported(self._outcomes[number]) else " || status == TESS_ERR_UNSUPPORTED"
                yield f"judge({what}, status == TESS_OK{lacking});"
            case "returned":
                pass  # the program's own host memory, or a compiler whose image is in the program
            case "answered" if function:
                yield f"judge({what}, status != TESS_ERR_UNSUPPORTED);"
            case "status" if function and str(check["expected"]).startswith("TESS_"):
                yield f"judge({what}, status == {check['expected']});"
            case "rejected" if function and all(name.startswith("TESS_") for name in check["categories"]):
                equal = " || ".join(f"status == {name}" for name in check["categories"])
                yield f"judge({what}, {equal});"
            case "bytes" | "value" if check["path"][1:] == ["data"] and isinstance(check["expected"], str):
                name = f"e{number}_{self._arrays}"
                self._arrays += 1
                if check.get("as"):
                    name = f"r{check['as']['exchange']}_data"
                else:
                    yield from self._array(name, check["expected"])
                start = check.get("start", 0)
                yield f"judge_bytes({what}, r{number}_data + {start}, {name}, {len(check['expected']) // 2});"
            case "value" if function and type(check["expected"]) in (int, bool) and len(check["path"]) == 2:
                variable = f"r{number}_{check['path'][1]}"
                yield f"judge({what}, (long long){variable} == {self._expression('', check['expected'])});"
            case _:
                yield f"only_the_suite({what});"


def _is_array(position: Input, value: Any) -> bool:
    return position.form in _ARRAYS and isinstance(value, str | Mapping) and "$from" not in value


def _length(value: Any) -> int:
    """Return the items of a list or the bytes of data; 0 of a pointer."""
    if isinstance(value, Mapping):
        return len(value.get("$bytes", "")) // 2
    if isinstance(value, str):
        return len(value) // 2
    return len(value) if isinstance(value, list) else 0


def _quoted(text: str) -> str:
    """Return a C string of the bytes of a text."""
    data = text.encode("utf-8", "surrogatepass")
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}" for byte in data)
    return f'"{"".join(plain)}"'


def _in_comment(text: str) -> str:
    return " ".join(text.split()).replace("*/", "* /").encode("ascii", "backslashreplace").decode()[:400]
