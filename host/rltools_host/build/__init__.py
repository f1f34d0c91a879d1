"""Builds firmware and host programs, and reads what they are made of."""
