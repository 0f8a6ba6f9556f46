"""What `tools/docs` does: pages made from code, and the site made from pages."""
