"""Speaks only a protocol of the future."""

from speaker import HELLO, converse

converse(lambda request: None, HELLO | {"protocol": {"minimum": 7, "maximum": 9}})
