class MissingTokenError(Exception):
    place: int
    token: str

def numberize(
    lines: list[str], vocabulary: dict[str, int], by_word: bool,
    before: list[int], after: list[int], unknown: int | None,
) -> list[list[int]]: ...
