"""Training runs: request, plan and session; groups, studies and tunings."""
