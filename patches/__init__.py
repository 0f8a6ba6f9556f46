"""The patches themselves, one module a gap, named after it.

A module here is imported when its gap is first applied, possibly from within an
import of upstream, so it imports nothing of upstream at its own top level.
"""
