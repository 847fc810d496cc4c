"""Describe objects of Fuel as text, tables and drawings."""
from fuel.describe.graph import PipelineGraph
from fuel.describe.source_types import SourceType, SourceTypes

__all__ = ['PipelineGraph', 'SourceType', 'SourceTypes']

# Pickles and error texts name the public path.
PipelineGraph.__module__ = SourceType.__module__ = __name__
