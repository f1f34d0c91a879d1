"""What this project needs of the system, and its Python environment."""
