"""Collectives: what every rank of a group computes together (runtime spec 4.6, 6, 13; language spec 9, 15)."""

from .operations import Operator, all_reduce, order_of, run

__all__ = ["Operator", "all_reduce", "order_of", "run"]
