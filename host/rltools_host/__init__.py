"""Host tools of the RLtools firmware monorepo: build, train, evaluate, flash."""

__version__ = "0.1.0"
