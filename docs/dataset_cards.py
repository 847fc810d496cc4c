"""A directive that draws a card for each data set of the registry."""
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from fuel.bin.listing import human_size
from fuel.downloaders.registry import dataset_facts, dataset_names, raw_files
from fuel.loading import CLASSES

__all__ = ['DatasetCards', 'card', 'setup']


def card(name):
    """Return the lines of one card.

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
    sizes = [file.size for file in raw_files(name)]
    known = sum(size or 0 for size in sizes)
    size = human_size(known) + (' or more' if None in sizes else '')
    verified = sum(file.verifiable for file in raw_files(name))
    lines = [f'**{facts["title"]}**', '',
             facts['about'][0].upper() + facts['about'][1:] + '.', '',
             f':Name: ``{name}``']
    if name in CLASSES:
        lines.append(':Class: :class:`~fuel.datasets.'
                     f'{CLASSES[name].rpartition(".")[2]}`')
    if not known:
        size = 'size unknown'
    outputs = ', '.join(f'``{output}``' for output in facts['outputs'])
    terms = facts['terms'] or 'unknown: look at its home page'
    return [*lines,
            f':Raw files: {len(sizes)}, {size}, {verified} with known digests',
            f':Terms: {terms}', f':Converted: {outputs}', '']


class DatasetCards(Directive):
    """``.. dataset-cards::`` has neither arguments nor content."""

    def run(self):
        """Return a container of cards."""
        grid = nodes.container(classes=['cards'])
        for name in dataset_names():
            box = nodes.container(classes=['card'])
            self.state.nested_parse(
                StringList(card(name), source='registry.json'), 0, box)
            grid += box
        return [grid]


def setup(app):
    """Register the directive with Sphinx."""
    app.add_directive('dataset-cards', DatasetCards)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
