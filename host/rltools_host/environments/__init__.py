"""Environments: the compiled ones for Python, and tasks of Gymnasium's."""
