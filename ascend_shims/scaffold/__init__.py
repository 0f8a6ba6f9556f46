"""A new gap: its entry, its module and its test, made from what is there.

project, target ─> texts, entry ─> checked by the loader ─> written
"""
