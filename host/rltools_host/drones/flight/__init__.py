"""Flights of a quadrotor: simulated, flown by policies, and judged."""
