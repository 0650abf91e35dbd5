"""Answers with null."""

from speaker import converse, result, send

converse(lambda request: send(result(request, None)))
