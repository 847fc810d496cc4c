"""Pages that have gone, and where their text is now.

A small page with the old name leads to the new place, so that links from
elsewhere still arrive.
"""
from pathlib import Path

from sphinx.errors import ExtensionError

__all__ = ['REDIRECTS', 'setup']

#: The name of each page that has gone: a page, or a page and a section.
REDIRECTS = {
    'bad_records': 'resuming#bad-records',
    'blocks': 'migration#blocks',
    'chainer': 'migration#chainer',
    'contributing': 'development#contributing',
    'data': 'index#data',
    'dataset_cards': 'built_in_datasets#dataset_cards',
    'format/index': 'format/wire',
    'keras': 'frameworks#keras',
    'layouts': 'hdf5_layouts#layouts',
    'masked_arrays': 'your_data#masked_arrays',
    'new_dataset': 'built_in_datasets#new_dataset',
    'paddle': 'migration#paddle',
    'pipelines': 'index#pipelines',
    'profiling': 'watching#profiling',
    'reference': 'index#reference',
    'scale': 'parallel#how-many-workers',
    'scikit_learn': 'frameworks#scikit_learn',
    'security': 'stability#security',
    'start': 'index#start',
    'testing': 'api/testing',
    'training': 'index#training',
    'zarr': 'arrow#zarr',
}

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>This page has moved</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta http-equiv="refresh" content="0; url={target}">
<link rel="canonical" href="{target}">
</head>
<body><p>This page has moved: <a href="{target}">{target}</a>.</p></body>
</html>
"""


def address(target, page):
    """Return the relative address of a target from a page.

    Parameters
    ----------
    target : str
        A name of a page, perhaps with ``#section``.
    page : str
        The name of the page with the link.

    Returns
    -------
    str

    """
    name, mark, section = target.partition('#')
    return '../' * page.count('/') + name + '.html' + mark + section


def write_redirects(app, exception):
    """Write a page for each name that has gone."""
    if exception is not None or app.builder.format != 'html':
        return
    for page, target in REDIRECTS.items():
        if page in app.env.found_docs:
            raise ExtensionError(f'the page {page} exists: it has not moved')
        if target.partition('#')[0] not in app.env.found_docs:
            raise ExtensionError(f'{page} moved to {target}, which is missing')
        path = Path(app.outdir, f'{page}.html')
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_PAGE.format(target=address(target, page)), 'utf-8')


def setup(app):
    """Write the pages after the build."""
    app.connect('build-finished', write_redirects)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
