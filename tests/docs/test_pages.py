"""Every example on a page of the manual runs."""
import doctest
from pathlib import Path

import pytest
from support import bridges
from support.doctest_sessions import run_page
from support.layouts import write_all

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize('page', bridges.pages())
def test_page_examples_print_what_the_page_says(page, tmp_path, monkeypatch):
    """The examples of a page are one session, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    if page == 'docs/hdf5_layouts.rst':
        write_all()
    run_page(page)


@pytest.mark.parametrize('pages, least', [
    ('overview', 40), ('built_in_datasets convert', 15),
    ('your_data convert', 120), ('built_in_datasets', 30), ('extending', 40)])
def test_page_of_the_old_manual_has_its_examples(pages, least):
    """Chapters 2 to 6 of the old manual are kept alive."""
    text = ''.join((ROOT / 'docs' / f'{page}.rst').read_text('utf-8')
                   for page in pages.split())
    assert least <= len(doctest.DocTestParser().get_examples(text))


@pytest.mark.parametrize('page', [
    *bridges.pages(), *(page for bridge in bridges.BRIDGES
                        for page in bridges.pages(bridge))])
def test_page_has_no_skipped_example(page):
    """Examples that are not run would rot."""
    assert 'doctest: +SKIP' not in (ROOT / page).read_text('utf-8')
