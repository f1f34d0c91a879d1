"""What `rlt check` finds out about an environment before a policy is trained in it."""
