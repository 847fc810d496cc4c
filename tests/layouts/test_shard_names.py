"""Splits in the names of shards, and shards in folders."""
import re

import pytest
from support.range_server import serving
from support.tar_files import digits, write_tar
from support.tfrecord_files import example, write_tfrecord

import fuel


def write(folder, *names):
    """Write archives of one sample each, which count on; return the
    folder."""
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        write_tar(folder / name, digits(number, 1))
    return folder


def labels_of(files, *arguments, **kwargs):
    """Return the labels in a data set."""
    return fuel.load(files, *arguments, **kwargs)[:][0].tolist()


@pytest.mark.parametrize('name', [
    'pets-{}-000{}.tar', 'pets_{}_0{}.tar', 'v1.{}.{}.tar', '0-{}_{}.tar',
    'pets-{}-0000{}-of-00002.tar', '{}-0{}.tar', 'a/pets-{}-{}.tar'])
def test_splits_are_words_of_the_names_of_shards(name, tmp_path):
    """They are not joined in silence, in a folder or a pattern."""
    folder = write(tmp_path / 'tars', *[
        name.format(split, number) for split in ('train', 'val')
        for number in range(2)])
    for files in folder, f'{folder}/{"a/" * ("/" in name)}*.tar':
        with pytest.raises(ValueError, match="has the splits 'train', 'val'"):
            fuel.load(files)
        assert [0, 1] == labels_of(files, 'train')
        assert [2, 3] == labels_of(files, 'val')
        assert [0, 1, 2, 3] == sorted(labels_of(files, 'all'))
        assert [2, 3, 0, 1] == labels_of(files, ['val', 'train'])
        assert [2] == labels_of(files, 'x', splits={'x': [2]})
        with pytest.raises(ValueError, match="no split 'test'; .*'train'"):
            fuel.load(files, 'test')


def test_shards_of_one_split_may_be_asked_for(tmp_path):
    """Without a split, all are read."""
    folder = write(tmp_path, 'pets-train-0.tar', 'pets-train-1.tar')
    for files in folder, f'{folder}/pets-train-*.tar':
        for split in None, 'train', 'all':
            assert [0, 1] == labels_of(files, split)
        with pytest.raises(ValueError, match="no split 'val'"):
            fuel.load(files, 'val')


@pytest.mark.parametrize('names', [
    ('a-train-0.tar', 'a-val-0.tar', 'a-extra-0.tar'),
    ('a-train-0.tar', 'a-train-val-0.tar'),
    ('test-x-train-0.tar', 'test-x-val-0.tar')])
def test_shards_of_unclear_splits_are_refused(names, tmp_path):
    """The error names a shard and a pattern; all rows may be asked for."""
    folder = write(tmp_path, *names)
    for split in None, 'train':
        with pytest.raises(ValueError, match=(
                r"splits '.*but .*\.tar' does not have one of them: pass a "
                r"pattern, such as .*\*\.tar', or a list of files, or split="
                "'all'")):
            fuel.load(folder, split)
    every = [*range(len(names))]
    assert every == sorted(labels_of(folder, 'all'))
    assert every == labels_of([str(folder / name) for name in names])


def test_pattern_in_the_error_reads_the_split(tmp_path):
    """Of shards whose numbers follow the extension too."""
    folder = write_numbers(tmp_path, *[
        f'a-{word}.tfrecord-0000{number}-of-00002' for word in (
            'train', 'val', 'extra') for number in range(2)])
    with pytest.raises(ValueError, match='such as ') as caught:
        fuel.load(folder)
    pattern = str(caught.value).partition("such as '")[2].partition("'")[0]
    assert [0, 1] == labels_of(pattern) == labels_of(pattern, 'train')


@pytest.mark.parametrize('names', [
    ('a-0.tar', 'a-1.tar'), ('a-test-val-0.tar', 'a-test-val-1.tar'),
    ('a-train-0.tar', 'a-extra-0.tar'), ('trainer-0.tar', 'value-1.tar')])
def test_shards_without_names_of_two_splits_are_joined(names, tmp_path):
    """As before."""
    assert [0, 1] == sorted(labels_of(write(tmp_path, *names)))


def test_folders_that_are_asked_for_come_before_names(tmp_path):
    """The names of shards in them do not matter."""
    folder = write(tmp_path, 'a/x-train-0.tar', 'b/x-val-0.tar')
    assert [1] == labels_of(folder, 'b')
    assert [0] == labels_of(folder, 'train')


@pytest.mark.parametrize('place', ['', 'test/'])
def test_names_are_not_split_again_in_the_split_of_a_folder(place, tmp_path):
    """Such as by words that come later in the names of its shards."""
    folder = write(tmp_path, f'{place}test-0.tar', f'{place}test-train-0.tar',
                   f'{place}test_val_0.tar', *['train/0.tar'] * bool(place))
    assert [0, 1, 2] == labels_of(folder, 'test')
    if not place:
        assert [0, 1, 2] == labels_of(f'{folder}/*.tar', 'test')


def write_numbers(folder, *names):
    """Write a TFRecord file of one feature for each name; return the
    folder."""
    folder.mkdir(exist_ok=True, parents=True)
    for number, name in enumerate(names):
        write_tfrecord(folder / name, [example(a=[number])])
    return folder


@pytest.mark.parametrize('ending', ['tfrecord', 'tfrecords', 'TFRecord'])
@pytest.mark.parametrize('start', ['', 'pets-'])
def test_folders_have_shards_with_tensorflows_names(ending, start, tmp_path):
    """A number follows the extension; a picture beside them does not count."""
    folder = write_numbers(tmp_path / 'x', *[
        f'{start}{split}.{ending}-0000{number}-of-00002'
        for split in ('train', 'validation') for number in range(2)])
    (folder / 'sample.png').write_bytes(b'x')
    assert [0, 1] == labels_of(folder, 'train')
    assert [2, 3] == labels_of(folder, 'validation')
    with pytest.raises(ValueError, match="the splits 'train', 'validation'"):
        fuel.load(folder)
    alone = write_numbers(tmp_path / 'y', f'a.{ending}-00000-of-00001')
    assert [0] == labels_of(alone)
    (alone / f'a.{ending}-00000-of-00001').write_bytes(b'abc')
    with pytest.raises(ValueError, match='a TFRecord file are a length'):
        fuel.load(alone)


@pytest.mark.parametrize('name', ['x.tar.gz', 'x.TGZ', 'below/x.tar.zst'])
def test_compressed_archives_beside_shards_are_named(name, tmp_path):
    """They are left out with a warning."""
    deep = 'below/' * ('/' in name)
    folder = write(tmp_path, f'{deep}0.tar', f'{deep}1.tar')
    (folder / name).write_bytes(b'x')
    with pytest.warns(UserWarning, match=f'{name}.*left out.*decompress'):
        assert [0, 1] == labels_of(folder)
    (folder / name).rename(folder / deep / 'notes.txt')
    assert [0, 1] == labels_of(folder)


def test_braces_are_split_as_a_pattern_is(tmp_path):
    """Both stand for files; the splits are not joined in silence."""
    folder = write(tmp_path, 'pets-train-0.tar', 'pets-val-0.tar')
    files = f'{folder}/pets-{{train,val}}-{{0..0}}.tar'
    with pytest.raises(ValueError, match="has the splits 'train', 'val'"):
        fuel.load(files)
    assert [0] == labels_of(files, 'train')
    assert [1] == labels_of(files, 'val')
    assert [0, 1] == labels_of(files, 'all')
    with pytest.raises(ValueError, match=r"no split 'test'.*'train', 'val'"):
        fuel.load(files, 'test')
    folders = write(tmp_path / 'a', 'train/0.tar', 'val/0.tar')
    assert [1] == labels_of(f'{folders}/{{train,val}}/0.tar', 'val')


def test_split_of_a_list_is_that_of_the_names(tmp_path):
    """Without a split, all files that were listed are read."""
    folder = write(tmp_path, 'pets-train-0.tar', 'pets-val-0.tar')
    files = [str(folder / f'pets-{split}-0.tar') for split in ('train', 'val')]
    assert [0, 1] == labels_of(files) == labels_of(files, 'all')
    assert [0] == labels_of(files, 'train')
    assert [1, 0] == labels_of(files, ['val', 'train'])
    assert [1] == labels_of(files, 'x', splits={'x': [1]})
    with pytest.raises(ValueError, match=r"no split 'test'.*'train', 'val'"):
        fuel.load(files, 'test')


def test_unknown_split_is_one_of_the_files_that_were_passed(tmp_path):
    """Only a pattern has files that fit it."""
    folder = write(tmp_path, 'train-0.tar', 'val-0.tar')
    files = [str(folder / f'{split}-0.tar') for split in ('train', 'val')]
    pattern = f'{folder}/*.tar'
    for given, where in (
            (files, f'{files[0]!r} and 1 more'), (files[0], repr(files[0])),
            (pattern, f"{pattern!r} fits no file of a split 'test'")):
        with pytest.raises(ValueError, match=re.escape(
                f"{where}: there is no split 'test'")) as caught:
            fuel.load(given, 'test')
        assert str(caught.value).startswith(where)


@pytest.mark.parametrize('name', ['pets-val-0.tar', 'val.tar', 'val-0.tar'])
def test_only_shard_is_the_split_of_its_name(name, tmp_path):
    """The remedy for another split would name its rows as that split."""
    path = write(tmp_path, name) / name
    for files in path, [path], f'{tmp_path}/{name[:-1]}?':
        assert [0] == labels_of(files) == labels_of(files, 'val')
        with pytest.raises(ValueError, match=r"no split 'train'.*\('val'") as (
                caught):
            fuel.load(files, 'train')
        assert 'splits=' not in str(caught.value)


@pytest.mark.parametrize('ending', ['csv', 'jsonl', 'bin'])
def test_lists_and_braces_of_tables_are_split_too(ending, tmp_path):
    """By the rule of their patterns, which is that of their first words."""
    contents = {'csv': b'x\n%d\n', 'jsonl': b'{"x": %d}\n', 'bin': b'\0%d'}
    for number, split in enumerate(('train', 'test')):
        (tmp_path / f'{split}.{ending}').write_bytes(
            contents[ending] % number)
    more = {'dtype': 'uint16'} if ending == 'bin' else {}
    for files in (f'{tmp_path}/{{train,test}}.{ending}',
                  [tmp_path / f'{one}.{ending}' for one in ('train', 'test')],
                  tmp_path / f'test.{ending}'):
        assert 1 == len(fuel.load(files, 'test', **more))
        with pytest.raises(ValueError, match="no split 'dev'.*the splits are"):
            fuel.load(files, 'dev', **more)


def test_shards_at_urls_are_split_by_their_names(tmp_path):
    """No folder is listed."""
    folder = write(tmp_path, 'pets-train-0.tar', 'pets-val-0.tar')
    with serving(folder) as server:
        files = server.url('pets-{train,val}-0.tar')
        with pytest.raises(ValueError, match="the splits 'train', 'val'"):
            fuel.load(files)
        assert [1] == labels_of(files, 'val')
        assert [0] == labels_of([server.url('pets-train-0.tar')], 'train')
