"""What can be known of an upstream symbol from source text alone."""
