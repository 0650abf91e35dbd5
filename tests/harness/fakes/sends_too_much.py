"""Answers with more than a harness should read: nested or endless lists, or a large file of holes."""

from speaker import converse, result, send


def answer(request: dict) -> None:
    kind = request["params"]["source"]
    if kind == "a file of holes":
        path = request["params"]["function"]
        with open(path, "wb") as file:
            file.truncate(1 << 40)
        tensor = {"dtype": "int8", "shape": [1 << 40], "file": path, "sha256": "0" * 64}
        send(result(request, {"returned": {"outputs": [{"$tensor": tensor}]}}))
        return
    lists = {
        "nested": ",".join(["[" * 400 + "]" * 400] * 1100),
        "many": ",".join(["[]"] * 300_000),
        "too many": ",".join(["0"] * 3_000_000),
        "too deep": "[" * 100_000 + "]" * 100_000,
        "a long integer": "9" * 100_000,
    }
    send(f'{{"jsonrpc":"2.0","id":{request["id"]},"result":{{"returned":{{"outputs":[{lists[kind]}]}}}}}}')


converse(answer)
