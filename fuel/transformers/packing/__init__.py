"""Packing of sequences into rows of one length."""
from fuel.transformers.packing.epoch import PackingReport as PackingReport
from fuel.transformers.packing.pack import Pack as Pack
