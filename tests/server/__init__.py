"""Tests of fuel.server and its client."""
