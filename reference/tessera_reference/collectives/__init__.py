"""Collectives: what every rank of a group computes together (runtime spec 4.6, 6, 13; language spec 9, 15)."""

from .operations import all_reduce, order_of, run

__all__ = ["all_reduce", "order_of", "run"]
