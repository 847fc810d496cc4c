"""Lets torchvision be imported beside a build of PyTorch for the CPU.

The wheel of the package index is compiled for CUDA, so that its operators do
not load there, and without them it cannot be imported. No transform needs
them. Import this module first.
"""
import importlib.util
from pathlib import Path

import torch


def are_loaded():
    """Load the operators, and return whether they could be."""
    folder = Path(importlib.util.find_spec('torchvision').origin).parent
    try:
        for library in folder.glob('_C*.so'):
            torch.ops.load_library(library)
    except OSError:
        return False
    return True


if not are_loaded():
    for name in 'nms', 'qnms':
        torch.library.define(
            f'torchvision::{name}',
            '(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')
