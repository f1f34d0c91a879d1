"""The page that trains in a browser."""
