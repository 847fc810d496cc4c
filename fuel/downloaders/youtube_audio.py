"""The sound of a YouTube video."""
import os
from contextlib import suppress

from fuel.downloaders.errors import DownloadError
from fuel.downloaders.base import ensure_directory_exists
from fuel.utils.extensions import filler_of

__all__ = ['download', 'fill_subparser']


def download(directory: str, youtube_id: str, clear: bool = False) -> None:
    """Download the sound of a video, or delete it.

    Parameters
    ----------
    directory : str
        The folder for the file. The file is named ``<youtube_id>.m4a``,
        whatever its format.
    youtube_id : str
        The video's identifier, the end of its address.
    clear : bool, optional
        Delete the file instead. Default False.

    Raises
    ------
    ValueError
        If the identifier has other characters than letters, digits, ``-``
        and ``_``.
    DownloadError
        If the package yt-dlp, which follows the site's changes, is not
        installed, or cannot get the sound.
    """
    if not youtube_id.replace('-', '').replace('_', '').isalnum():
        raise ValueError('expected the identifier of a video, such as '
                         f'dQw4w9WgXcQ, got {youtube_id!r}')
    path = os.path.join(directory, f'{youtube_id}.m4a')
    if clear:
        with suppress(FileNotFoundError):
            os.remove(path)
        return
    ensure_directory_exists(directory)
    try:
        import yt_dlp  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError as error:
        raise DownloadError('the sound of a video is downloaded with yt-dlp: '
                            'pip install yt-dlp') from error
    # yt-dlp resumes and renames files. No name comes from the site.
    template = path.replace('%', '%%')
    settings = {'format': 'bestaudio', 'outtmpl': {'default': template},
                'noplaylist': True, 'quiet': True}
    try:
        with yt_dlp.YoutubeDL(settings) as downloader:
            downloader.download(
                [f'https://www.youtube.com/watch?v={youtube_id}'])
    except yt_dlp.utils.DownloadError as error:
        raise DownloadError(f'{youtube_id}: {error}') from error


fill_subparser = filler_of(
    download, '--youtube-id', required=True,
    help='the end of the address of the video')
