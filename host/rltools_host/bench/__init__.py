"""Benchmarks: what is timed against what."""
