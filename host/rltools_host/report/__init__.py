"""The report on a run."""
