"""What it has for Model Runner V2."""
