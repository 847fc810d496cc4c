"""Bridges to other libraries are tested in environments of their own."""
from pathlib import Path

from support import bridges

ROOT = Path(__file__).parents[2]


def test_bridges_are_complete():
    """Their extras and pages exist, and each documents something."""
    setup = (ROOT / 'setup.cfg').read_text('utf-8')
    for bridge in bridges.BRIDGES.values():
        for extra in bridge.extras:
            assert f'\n{extra} =\n' in setup, bridge
        for page in bridge.pages:
            assert (ROOT / page).exists(), bridge
        for script in bridge.benchmarks:
            assert (ROOT / 'benchmarks' / script).exists(), bridge


def test_modules_that_need_an_extra_are_told_from_others():
    """By the name of the extra, and not by what is installed here."""
    assert 'torch' == bridges.of_module('fuel.interop.torch.dataset')
    for name in ('fuel', 'fuel.interop', 'fuel.interop.number_arrays',
                 'fuel.streams.base'):
        assert bridges.of_module(name) is None
        assert name in bridges.modules()
    assert 'fuel.interop.torch' not in bridges.modules()
    assert 'fuel.interop.torch' in bridges.modules('torch')
