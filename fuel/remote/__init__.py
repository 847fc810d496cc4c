"""Bytes of files in object storage and on web servers, cached locally."""
