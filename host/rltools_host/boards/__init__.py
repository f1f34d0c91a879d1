"""Boards: their descriptions, and the emulators of some."""
