"""The documentation as a site: its pages gathered from the tree, its tutorials executed."""
