"""The plugin's workers."""
