"""Proof that upstream's own objects are back, byte for byte."""
