class Tiles:
    num_rows: int
    block_rows: int
    num_tiles: int
    row_nbytes: int
    chunk_nbytes: int
    def __init__(
        self, shape: tuple[int, ...], chunk_shape: tuple[int, ...],
        itemsize: int,
    ) -> None: ...
