"""Tar archives for tests, written by Python's own `tarfile`."""
import io
import tarfile

import numpy


def member(name, content=b'', **attributes):
    """Return a member, for `tarfile`, with attributes such as its type."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in attributes.items():
        setattr(info, key, value)
    return info, content


def write_tar(path, members, form=tarfile.PAX_FORMAT):
    """Write an archive of members, or of pairs of a name and its content."""
    with tarfile.open(path, 'w', format=form) as archive:
        for name, content in members:
            info = member(name, content)[0] if isinstance(name, str) else name
            archive.addfile(info, io.BytesIO(content))
    return path


def index_of(path):
    """Return DALI's index of an archive, as its wds2idx writes it."""
    samples = {}
    with tarfile.open(path) as archive:
        for info in filter(tarfile.TarInfo.isreg, archive):
            folder, _, base = info.name.rpartition('/')
            key, _, extension = base.partition('.')
            if key:
                samples.setdefault((folder, key), []).append(
                    f'{extension} {info.offset_data} {info.size} {info.name}')
    return f'v1.2 {len(samples)}\n' + ''.join(
        ' '.join(members) + '\n' for members in samples.values())


def npy(array):
    """Return the bytes of a ``.npy`` file."""
    stream = io.BytesIO()
    numpy.save(stream, array)
    return stream.getvalue()


def digits(first=0, count=10):
    """Yield the members of some samples, whose contents name them."""
    for number in range(first, first + count):
        key = f'part/{number:05}'
        yield f'{key}.cls', b'%d' % number
        yield f'{key}.jpg', b'image %d' % number * (number % 5)
        yield f'{key}.txt', f'Bild {number} — ä'.encode()


def change_header(path, number, **fields):
    """Change fields of a header, given as bytes, and correct its check sum.

    `number`: number of the header among those that `tarfile` reads.
    """
    places = {'size': (124, 12), 'typeflag': (156, 1), 'name': (0, 100),
              'magic': (257, 6)}
    with tarfile.open(path) as archive:
        offset = archive.getmembers()[number].offset_data - 512
    content = bytearray(path.read_bytes())
    block = content[offset:offset + 512]
    for name, value in fields.items():
        start, length = places[name]
        block[start:start + length] = value.ljust(length, b'\0')
    block[148:156] = b' ' * 8
    block[148:156] = b'%06o\0 ' % sum(block)
    content[offset:offset + 512] = block
    path.write_bytes(content)
