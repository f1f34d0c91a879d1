"""Parameters of a quadrotor from the log of a flight: docs/fit.md."""
