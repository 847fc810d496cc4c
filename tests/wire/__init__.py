"""Tests of fuel.wire."""
