"""What upstream's source text says, and whether what we rely on still holds.

Nothing in here imports or runs upstream code.
"""
