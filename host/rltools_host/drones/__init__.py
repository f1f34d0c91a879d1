"""Drones: fitting a model to a flight's log, simulated flights and gates, PX4 and Crazyflie."""
