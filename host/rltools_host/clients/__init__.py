"""What a board offers over the link: one client per service."""
