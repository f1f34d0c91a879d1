"""Hardware in the loop: whether a board computes what this machine does, and what it costs."""
