"""Vehicles with firmware of their own, as things that one connects to: PX4, a Crazyflie."""
