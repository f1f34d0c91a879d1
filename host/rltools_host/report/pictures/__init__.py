"""Pictures of environments, each a module named as its environment."""
