"""Axis labels that several data sets share."""

__all__ = ['IMAGES', 'LABELS']

IMAGES = ('batch', 'channel', 'height', 'width')
LABELS = ('batch', 'index')
