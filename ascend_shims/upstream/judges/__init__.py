"""One judge for each way of relying; each gives a finding or nothing to say."""
