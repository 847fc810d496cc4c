class Tiles:
    num_tiles: int
    row_nbytes: int
    stride: int
    whole: bool
    def __init__(
        self, row_shape: tuple[int, ...], tile_shape: tuple[int, ...],
        itemsize: int, fields: list[tuple[int, int]] | None = ...,
    ) -> None: ...
