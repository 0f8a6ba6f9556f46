"""A made-up upstream: the same method, once for each way of standing before it."""

__version__ = "1.0"
