"""What a training run leaves on disk."""
