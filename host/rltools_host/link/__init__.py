"""Bytes and frames between this machine and a board."""
