"""Policies: the deployable image, its export and its evaluation."""
