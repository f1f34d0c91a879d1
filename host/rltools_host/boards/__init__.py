"""Boards: their descriptions, which are connected, their emulators."""
