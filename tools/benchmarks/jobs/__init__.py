"""What runs in interpreters of its own; each prints its answer as a line of JSON."""
