"""Claims no document at all."""

from speaker import HELLO, converse

converse(lambda request: None, HELLO | {"documents": []})
