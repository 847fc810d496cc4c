"""Draw the graph of a pipeline, and write it in Graphviz's language."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fuel.describe.pipeline import described, short
from fuel.epochs.sealing import present_ids
from fuel.utils.arguments import try_call

if TYPE_CHECKING:
    from fuel.describe.drawing import Box


class PipelineGraph:
    r"""A drawing of a pipeline.

    A notebook shows the drawing.  ``str(graph)`` is the graph in Graphviz's
    language (DOT), to draw it in another style.

    Parameters
    ----------
    stream : AbstractDataStream

    Attributes
    ----------
    source : str
        The graph in Graphviz's language.
    order_id, data_id : str
        The ids of the order and of the data that a state would have now; ''
        if they are not known.

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
        # Imported here, since few programs draw.
        from fuel.describe.drawing import Box
        self.title = short(stream)
        self.order_id, self.data_id = try_call(('', ''), present_ids, stream)
        self._boxes = [Box.of(stage) for stage in described(stream)]
        self.source = _source(self._boxes)

    def __str__(self) -> str:
        return self.source

    def __repr__(self) -> str:
        return f'<{type(self).__name__} of {self.title}>'

    def svg(self) -> str:
        """Return the drawing.

        Data sets are on top, and each stage is below its inputs.  A stage
        that runs in workers, in threads or on a server has a dashed outline.

        Returns
        -------
        str
            The drawing in SVG.
        """
        from fuel.describe.drawing import drawing
        ids = self.order_id and (
            f'; order {self.order_id}, data {self.data_id}')
        return drawing(self.title + ids, self._boxes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the drawing, or the text in Graphviz's language.

        Parameters
        ----------
        path : str
            Name of the file.  If it ends in ``.svg``, the drawing is saved,
            otherwise the text.
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
