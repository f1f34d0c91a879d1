"""Plans a training run and carries it out."""
