"""Boards: the link to one, clients of its services, policies pushed to it and measured."""
