"""Collectives: what every rank of a group computes together (runtime spec 4.6, 6, 13; language spec 9, 15)."""

from .all_reduce import Operator, all_reduce
from .operations import run
from .orders import order_of

__all__ = ["Operator", "all_reduce", "order_of", "run"]
