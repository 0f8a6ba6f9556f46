"""What `tools/bench` measures, one module a subject.

A benchmark gives rows; a row compares two things that were measured in turns, in one
run on one machine. What has to happen in an interpreter of its own is in `jobs`.
"""
