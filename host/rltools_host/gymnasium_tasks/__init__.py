"""Tasks of Gymnasium's: episodes are played in Python, and learnt from by a compiled experiment."""
