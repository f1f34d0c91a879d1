"""Which boards are connected; bytes and frames between this machine and a board."""
