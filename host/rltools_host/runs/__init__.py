"""Folders of runs and groups on disk."""
