"""Progress and tables of a terminal."""
