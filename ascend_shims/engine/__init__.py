"""Bringing the bindings of this process to what a plan says, and reading them."""
