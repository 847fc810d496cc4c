"""A directive that draws a card for each data set of the registry."""
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from dataset_pictures import draw

from fuel.bin.listing import human_size
from fuel.downloaders.registry import dataset_facts, dataset_names, raw_files

__all__ = ['DatasetCards', 'card', 'setup']


def card(name):
    """Return the lines of one card, without its picture.

    Parameters
    ----------
    name : str
        A data set of the registry.

    Returns
    -------
    list of str
        reStructuredText.
    """
    facts = dataset_facts(name)
    about = facts['about']
    class_name = facts['class'].rpartition('.')[2]
    fields = {'Name': f'``{name}``',
              'Class': f':class:`~fuel.datasets.{class_name}`',
              'Examples': _splits(facts), 'One example': _example(facts),
              'Classes': facts['classes'] and f'{facts["classes"]:,}',
              'Raw files': _raw(name),
              'Converted': ', '.join(f'``{output}``'
                                     for output in facts['outputs']),
              'Licence': facts['terms'] or 'unknown: see its home page',
              # Escaped, or the initial of an author would begin a list.
              'Cite': facts['citation'] and f'\\{facts["citation"]}'}
    return [f'**{facts["title"]}**', '', f'{about[0].upper()}{about[1:]}.',
            '', *(f':{field}: {value}' for field, value in fields.items()
                  if value), '']


def _splits(facts):
    if not facts['splits']:
        return None
    text = ', '.join(f'{name} {count:,}'
                     for name, count in facts['splits'].items())
    return text + (f' (``{facts["described"]}``)' if 'described' in facts
                   else '')


def _example(facts):
    """Return the shape of one example, in words."""
    if facts['example'] is None:
        return 'of any size' if facts['kind'] == 'images' else None
    shape = ' x '.join(map(str, facts['example']))
    return f'{shape} features' if facts['kind'] == 'table' else shape


def _raw(name):
    files = raw_files(name)
    if not files:
        return None
    sizes = [file.size for file in files]
    known = sum(size or 0 for size in sizes)
    size = human_size(known) + (' or more' if None in sizes else '')
    verified = sum(file.verifiable for file in files)
    return (f'{len(files)}, {size if known else "size unknown"}, '
            f'{verified} with known digests')


class DatasetCards(Directive):
    """``.. dataset-cards::`` has neither arguments nor content."""

    def run(self):
        """Return a container of cards."""
        grid = nodes.container(classes=['cards', 'datasets'])
        for name in dataset_names():
            box = nodes.container(classes=['card'])
            box += nodes.raw('', draw(dataset_facts(name)), format='html')
            self.state.nested_parse(
                StringList(card(name), source='registry.json'), 0, box)
            grid += box
        return [grid]


def setup(app):
    """Register the directive with Sphinx."""
    app.add_directive('dataset-cards', DatasetCards)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
