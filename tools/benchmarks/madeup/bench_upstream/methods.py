"""Classes that differ in what is going to stand before their methods."""

from __future__ import annotations

from types import SimpleNamespace

__all__ = ["Decorated", "Off", "Runner", "Stock", "Unguarded", "Wrapped"]


class Stock:
    def method(self, number: int) -> int:
        return number


class Wrapped:
    def method(self, number: int) -> int:
        return number


class Decorated:
    def method(self, number: int) -> int:
        return number


class Off:
    def method(self, number: int) -> int:
        return number


class Runner:
    """The two halves of an engine step, with nothing in them."""

    def __init__(self) -> None:
        self.execute_model_state: object = None
        self.is_pooling_model = False
        self.state = SimpleNamespace(input_batch=None)

    def execute_model(
        self,
        scheduler_output: object,  # noqa: ARG002 - upstream's name, which is read
        dummy_run: bool = False,  # noqa: ARG002
    ) -> None:
        self.execute_model_state = self.state

    def sample_tokens(self, grammar_output: object) -> None:  # noqa: ARG002
        self.execute_model_state = None


class Unguarded:
    """The same, with functions of its own: references to a function follow it."""

    def __init__(self) -> None:
        self.execute_model_state: object = None
        self.is_pooling_model = False
        self.state = SimpleNamespace(input_batch=None)

    def execute_model(
        self,
        scheduler_output: object,  # noqa: ARG002 - upstream's name, which is read
        dummy_run: bool = False,  # noqa: ARG002
    ) -> None:
        self.execute_model_state = self.state

    def sample_tokens(self, grammar_output: object) -> None:  # noqa: ARG002
        self.execute_model_state = None
