"""Data sets of Chainer's kind made of others, for either library.

A tower is plain data, so that both libraries can build the same one.
"""
from hypothesis import strategies as st


def users_data_sets(module):
    """Return data sets as users write them, by what they override."""
    class Examples(module.DatasetMixin):
        """Reads an example; 13 is a damaged one."""

        def __init__(self, values):
            self.values = values

        def __len__(self):
            return len(self.values)

        def get_example(self, i):
            if self.values[i] == 13:
                raise KeyError('damaged')
            return self.values[i]

    class Items(module.DatasetMixin):
        """Is indexed, and has no examples of the mixin's kind."""

        def __init__(self, values):
            self.values = values

        def __len__(self):
            return len(self.values)

        def __getitem__(self, index):
            if isinstance(index, slice):
                return [value + 100 for value in self.values[index]]
            if isinstance(index, list):
                return [self[i] for i in index]
            return self.values[index] + 100

    class ItemsToo(Examples):
        """Overrides both, with other values."""

        def __getitem__(self, index):
            found = super().__getitem__(index)
            if isinstance(found, list):
                return [value + 200 for value in found]
            return found + 200

    class Slices(Examples):
        """Has a way of its own to read a slice alone."""

        def __getitem__(self, index):
            if isinstance(index, slice):
                return [value + 300 for value in self.values[index]]
            return super().__getitem__(index)

    return {'examples': Examples, 'items': Items, 'items too': ItemsToo,
            'slices': Slices, 'list': list}


def users_subclasses(base):
    """Return a combined data set, and what users make of it."""
    class OwnExample(base):
        """Changes an example."""

        def get_example(self, i):
            return 'own', super().get_example(i)

    class OwnItem(base):
        """Changes what indexing returns."""

        def __getitem__(self, index):
            return 'item', super().__getitem__(index)

    return {'': base, 'example': OwnExample, 'item': OwnItem}


def build(module, tower):
    """Return the data set that a tower describes, with a library's classes.

    `module`: has the names of `chainer.dataset` and `chainer.datasets`.
    """
    kind, *parts = tower
    if kind in LEAVES:
        return users_data_sets(module)[kind](*parts)
    if kind in ('TupleDataset', 'ConcatenatedDataset'):
        return getattr(module, kind)(
            *[build(module, part) for part in parts])
    if kind == 'DictDataset':
        return module.DictDataset(
            a=build(module, parts[0]), b=build(module, parts[1]))
    override, part = parts
    dataset = build(module, part)
    if kind == 'TransformDataset':
        return users_subclasses(module.TransformDataset)[override](
            dataset, lambda example: ('transformed', example))
    middle = len(dataset) // 2
    order = list(range(len(dataset)))[::-1]
    return users_subclasses(module.SubDataset)[override](
        dataset, middle // 2, len(dataset), order)


LEAVES = ('examples', 'items', 'items too', 'slices', 'list')
OVERRIDES = st.sampled_from(['', '', 'example', 'item'])


def _combined(parts):
    return st.one_of(
        st.tuples(st.just('TransformDataset'), OVERRIDES, parts),
        st.tuples(st.just('SubDataset'), OVERRIDES, parts),
        st.tuples(st.just('ConcatenatedDataset'), parts, parts),
        parts.map(lambda part: ('TupleDataset', part, part)),
        parts.map(lambda part: ('DictDataset', part, part)))


#: Data sets over data sets, of plain data.
towers = st.recursive(
    st.tuples(st.sampled_from(LEAVES),
              st.lists(st.integers(0, 20), min_size=1, max_size=6)),
    _combined, max_leaves=4)
