"""Vehicles with firmware of their own: PX4, connected to and flown; a Crazyflie."""
