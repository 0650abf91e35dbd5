"""Answers every call with the id of another."""

from speaker import converse, result, send

converse(lambda request: send(result({"id": request["id"] + 1}, {"returned": {"modules": []}})))
