"""Patches of the made-up upstream that do nothing but call what is beneath."""
