"""The version of Fuel."""
version = '1.0.0'
