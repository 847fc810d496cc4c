"""Tests of fuel.transport."""
