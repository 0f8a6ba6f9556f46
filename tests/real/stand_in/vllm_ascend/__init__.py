"""Stands for the downstream plugin: the same places, on the software NPU."""
