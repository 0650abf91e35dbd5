"""Returns tensors whose bits do not fit their shape."""

from speaker import converse, result, send

TENSOR = {"$tensor": {"dtype": "bf16", "shape": [2, 2], "bits": "3f80"}}
converse(lambda request: send(result(request, {"returned": {"outputs": [TENSOR]}})))
