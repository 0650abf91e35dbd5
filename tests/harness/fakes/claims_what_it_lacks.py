"""Claims the language document, and supports none of it."""

from speaker import converse, result, send

converse(lambda request: send(result(request, {"unsupported": {"feature": request["method"]}})))
