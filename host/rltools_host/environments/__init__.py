"""Compiled environments for Python: which there are, their libraries, Gymnasium's interface."""
