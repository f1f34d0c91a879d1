"""Policies of other libraries: reads their files, proves what was read, and makes runs of them."""
