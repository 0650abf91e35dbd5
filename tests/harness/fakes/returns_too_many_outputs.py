"""Returns one output more than the function has."""

from speaker import converse, result, send


def answer(request: dict) -> None:
    tensors = list(request["params"].get("inputs", {}).values())
    send(result(request, {"returned": {"outputs": [*tensors, *tensors, *tensors]}}))


converse(answer)
