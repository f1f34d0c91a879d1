"""The checks of `rlt check`, of an environment before a policy is trained in it."""
