"""Encode and decode network messages: a header in JSON and raw frames.

Pure functions over bytes; the format is specified in ``docs/format``.
"""
from fuel.wire.decoding import decode
from fuel.wire.encoding import encode
from fuel.wire.header import Limits, WireError, pack_header, unpack_header

__all__ = ['Limits', 'WireError', 'decode', 'encode', 'pack_header',
           'unpack_header']
