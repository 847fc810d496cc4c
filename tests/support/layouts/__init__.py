"""Small files of each layout that is recognised."""
from pathlib import Path

import numpy

from support.layouts import cells, fields, particles, robots
from support.layouts.miniature import Miniature, Written

MINIATURES = [
    Miniature('h5ad', 'anndata', cells.h5ad),
    Miniature('h5ad dense', 'anndata', cells.h5ad_dense),
    Miniature('h5ad 0.7', 'anndata', cells.h5ad_07),
    Miniature('h5ad before 0.7', 'anndata', cells.h5ad_06),
    Miniature('robomimic', 'robomimic', robots.robomimic),
    Miniature('LIBERO', 'robomimic', robots.libero),
    Miniature('ALOHA', 'aloha', robots.aloha),
    Miniature('Minari', 'minari', robots.minari),
    Miniature('D4RL', 'd4rl', robots.d4rl),
    Miniature('stable-worldmodel', 'stable_worldmodel',
              robots.stable_worldmodel),
    Miniature('The Well', 'the_well', fields.the_well),
    Miniature('makani', 'makani', fields.makani),
    Miniature('netCDF', 'netcdf', fields.netcdf),
    Miniature('salt', 'plain', particles.salt),
    Miniature('nested', 'plain', particles.nested),
    Miniature('MACE', 'mace', particles.mace),
    Miniature('SPICE', 'molecules', particles.spice),
    Miniature('ANI', 'molecules', particles.ani),
    Miniature('RETURNN', 'returnn', particles.returnn),
    Miniature('NWB', 'nwb', particles.nwb),
    Miniature('torch_brain', 'torch_brain', particles.torch_brain),
    Miniature('PDEBench', 'pdebench', fields.pdebench),
    Miniature('PDEBench groups', 'pdebench', fields.pdebench_groups),
    Miniature('MultimodalUniverse', 'multimodal_universe',
              particles.universe),
    Miniature('MATLAB', 'matlab', particles.matlab)]

# Folders of the layouts that a page of the manual has in one.
FOLDERS = {'Minari': 'minari', 'The Well': 'fluid',
           'MultimodalUniverse': 'sky'}


def miniature_named(name):
    """Return the miniature of a name."""
    return next(one for one in MINIATURES if one.name == name)


def write_all():
    """Write the files that a page of the manual opens, where it runs."""
    for one in MINIATURES:
        folder = Path(FOLDERS.get(one.name, ''))
        folder.mkdir(exist_ok=True)
        one.write(folder, numpy.random.default_rng(1))


__all__ = [
    'MINIATURES', 'Miniature', 'Written', 'miniature_named', 'write_all']
