"""A pipeline as a graph: its drawing, and a text for Graphviz."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fuel.describe.pipeline import described, short

if TYPE_CHECKING:
    from fuel.describe.drawing import Box


class PipelineGraph:
    r"""A drawing of a pipeline.

    A notebook shows the drawing; ``str(graph)`` is the text that Graphviz
    takes, for those who want it drawn otherwise.

    Parameters
    ----------
    stream : AbstractDataStream

    Attributes
    ----------
    source : str
        In Graphviz's language.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([1, 2]))
    >>> print(stream.describe())
    digraph pipeline {
      node [shape=box, fontname="sans-serif"];
      stage0 [label="DataStream\ndata\n2 examples"];
      stage1 [label="IterableDataset\ndata\n2 examples", shape=cylinder];
      stage1 -> stage0;
    }
    """

    def __init__(self, stream: object) -> None:
        # Not imported above: few draw.
        from fuel.describe.drawing import Box
        self.title = short(stream)
        self._boxes = [Box.of(stage) for stage in described(stream)]
        self.source = _source(self._boxes)

    def __str__(self) -> str:
        return self.source

    def __repr__(self) -> str:
        return f'<{type(self).__name__} of {self.title}>'

    def svg(self) -> str:
        """Return the drawing.

        Data sets are on top, and each stage is below those that it reads.
        What runs elsewhere, such as in worker processes, has a dashed rim.

        Returns
        -------
        str
            In SVG.
        """
        from fuel.describe.drawing import drawing
        return drawing(self.title, self._boxes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the drawing, or the text that Graphviz takes.

        Parameters
        ----------
        path : str
            Ends in ``.svg`` for the drawing.
        """
        from fuel.utils.atomic_files import write_text
        name = os.fspath(path)
        write_text(
            name, self.svg() if name.endswith('.svg') else self.source)

    def _repr_svg_(self) -> str:
        return self.svg()


def _source(stages: list[Box]) -> str:
    lines = ['digraph pipeline {',
             '  node [shape=box, fontname="sans-serif"];']
    for number, stage in enumerate(stages):
        label = '\\n'.join(map(_quoted, stage.lines))
        shape = ', shape=cylinder' if stage.is_dataset else ''
        lines.append(f'  stage{number} [label="{label}"{shape}];')
    lines += [f'  stage{number} -> stage{stage.parent};'
              for number, stage in enumerate(stages)
              if stage.parent is not None]
    return '\n'.join([*lines, '}'])


def _quoted(text: str) -> str:
    return text.replace('\\', '\\\\').replace('"', '\\"')
