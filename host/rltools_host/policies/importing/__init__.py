"""Policies of other libraries: readers of their files, proofs of what was read, and runs made of
them."""
