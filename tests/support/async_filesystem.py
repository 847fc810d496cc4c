"""An asynchronous file system of fsspec in memory, as of object storage.

Each write of an object is a new generation. What `info` says is remembered
until the cache is invalidated, as in those of Google and Azure.
"""
import asyncio
import itertools
from typing import ClassVar

import fsspec
from fsspec.asyn import AsyncFileSystem

PROTOCOL = 'objects'


class ObjectFilesystem(AsyncFileSystem):
    """Objects of all instances, by name.

    Attributes
    ----------
    objects : dict of str to (int, bytes)
        Generation and content.
    events : list of callable
        Of each read, the first is taken and called between the moment it was
        asked for and that its bytes are taken; None for nothing.
    asked : list of str
        The operations that reached the storage.

    """

    protocol = PROTOCOL
    cachable = False
    objects: ClassVar = {}
    events: ClassVar = []
    asked: ClassVar = []
    generations = itertools.count(1)

    @classmethod
    def put(cls, name, content):
        """Write a new generation of an object."""
        cls.objects[name] = next(cls.generations), content

    async def _info(self, path, **kwargs):
        known = self.dircache.get(path)
        if known is None:
            await asyncio.sleep(0)
            self.asked.append('info')
            generation, content = self._get(path)
            known = self.dircache[path] = [{
                'name': path, 'type': 'file', 'size': len(content),
                'generation': generation, 'etag': f'"{generation:x}"'}]
        return known[0]

    async def _cat_file(self, path, start=None, end=None, **kwargs):
        await asyncio.sleep(0)
        event = self.events.pop(0) if self.events else None
        if event is not None:
            event()
        self.asked.append('cat_file')
        return self._get(path)[1][start:end]

    def _get(self, path):
        try:
            return self.objects[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def invalidate_cache(self, path=None):
        """Forget what was said of objects."""
        self.dircache.clear()


fsspec.register_implementation(PROTOCOL, ObjectFilesystem, clobber=True)
