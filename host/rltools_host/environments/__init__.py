"""Environments: the compiled ones for Python, and Gymnasium tasks."""
