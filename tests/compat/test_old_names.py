"""Every import path of Fuel 0.2.0 keeps working."""
import importlib
import pickle
import pkgutil

import pytest
from support.processes import run_python

import fuel

# The whole list, module by module.
NAMES = {
    'fuel': 'config',
    'fuel.bin.fuel_convert': 'main',
    'fuel.bin.fuel_download': 'main',
    'fuel.bin.fuel_info': 'main',
    'fuel.config_parser':
        'config Configuration ConfigurationError extra_downloader_converter',
    'fuel.converters': 'all_converters __version__',
    'fuel.converters.adult':
        'convert_adult convert_to_one_hot fill_subparser',
    'fuel.converters.base':
        'check_exists fill_hdf5_file MissingInputFiles progress_bar',
    'fuel.converters.binarized_mnist':
        'convert_binarized_mnist fill_subparser TRAIN_FILE VALID_FILE '
        'TEST_FILE ALL_FILES',
    'fuel.converters.caltech101_silhouettes':
        'convert_silhouettes fill_subparser',
    'fuel.converters.celeba':
        'convert_celeba convert_celeba_64 convert_celeba_aligned_cropped '
        'fill_subparser NUM_EXAMPLES DATASET_FILES OUTPUT_FILENAME',
    'fuel.converters.cifar10': 'convert_cifar10 fill_subparser',
    'fuel.converters.cifar100': 'convert_cifar100 fill_subparser',
    'fuel.converters.dogs_vs_cats': 'convert_dogs_vs_cats fill_subparser',
    'fuel.converters.ilsvrc2010':
        'extract_patch_images image_consumer load_from_tar_or_patch '
        'other_set_producer prepare_hdf5_file prepare_metadata '
        'process_train_set process_other_set read_devkit '
        'read_metadata_mat_file train_set_producer DEVKIT_META_PATH '
        'DEVKIT_ARCHIVE TEST_GROUNDTRUTH IMAGE_TARS PUBLIC_FILES '
        'create_splits',
    'fuel.converters.ilsvrc2012':
        'prepare_hdf5_file prepare_metadata read_devkit '
        'read_metadata_mat_file DEVKIT_META_PATH DEVKIT_ARCHIVE '
        'TEST_IMAGES_TAR create_splits',
    'fuel.converters.iris': 'convert_iris fill_subparser',
    'fuel.converters.mnist':
        'convert_mnist fill_subparser read_mnist_images read_mnist_labels',
    'fuel.converters.svhn':
        'convert_svhn convert_svhn_format_1 convert_svhn_format_2 '
        'fill_subparser',
    'fuel.converters.youtube_audio': 'fill_subparser',
    'fuel.datasets':
        'Adult BinarizedMNIST CalTech101Silhouettes CelebA CIFAR10 CIFAR100 '
        'Dataset DogsVsCats H5PYDataset IndexableDataset Iris '
        'IterableDataset MNIST OneBillionWord SVHN TextFile',
    'fuel.datasets.adult': 'Adult',
    'fuel.datasets.base': 'Dataset IndexableDataset IterableDataset',
    'fuel.datasets.billion': 'OneBillionWord',
    'fuel.datasets.binarized_mnist': 'BinarizedMNIST',
    'fuel.datasets.caltech101_silhouettes': 'CalTech101Silhouettes',
    'fuel.datasets.celeba': 'CelebA',
    'fuel.datasets.cifar10': 'CIFAR10',
    'fuel.datasets.cifar100': 'CIFAR100',
    'fuel.datasets.dogs_vs_cats': 'DogsVsCats',
    'fuel.datasets.hdf5': 'H5PYDataset PytablesDataset h5py',
    'fuel.datasets.imagenet': 'ILSVRC2010 ILSVRC2012',
    'fuel.datasets.iris': 'Iris',
    'fuel.datasets.mnist': 'MNIST',
    'fuel.datasets.svhn': 'SVHN',
    'fuel.datasets.text': 'TextFile',
    'fuel.datasets.toy': 'Spiral SwissRoll',
    'fuel.datasets.youtube_audio': 'YouTubeAudio',
    'fuel.downloaders': 'all_downloaders',
    'fuel.downloaders.adult': 'fill_subparser',
    'fuel.downloaders.base':
        'default_downloader download ensure_directory_exists '
        'filename_from_url NeedURLPrefix progress_bar requests',
    'fuel.downloaders.binarized_mnist': 'fill_subparser',
    'fuel.downloaders.caltech101_silhouettes':
        'fill_subparser silhouettes_downloader',
    'fuel.downloaders.celeba': 'fill_subparser',
    'fuel.downloaders.cifar10': 'fill_subparser',
    'fuel.downloaders.cifar100': 'fill_subparser',
    'fuel.downloaders.dogs_vs_cats': 'fill_subparser',
    'fuel.downloaders.ilsvrc2010': 'fill_subparser',
    'fuel.downloaders.ilsvrc2012': 'fill_subparser',
    'fuel.downloaders.iris': 'fill_subparser',
    'fuel.downloaders.mnist': 'fill_subparser',
    'fuel.downloaders.svhn': 'fill_subparser svhn_downloader',
    'fuel.downloaders.youtube_audio': 'fill_subparser',
    'fuel.exceptions': 'AxisLabelsMismatchError ConfigurationError',
    'fuel.iterator': 'DataIterator',
    'fuel.schemes':
        'BatchScheme BatchSizeScheme ConcatenatedScheme ConstantScheme '
        'cross_validation IndexScheme IterationScheme '
        'SequentialExampleScheme SequentialScheme ShuffledExampleScheme '
        'ShuffledScheme',
    'fuel.server': 'recv_arrays send_arrays start_server',
    'fuel.streams': 'AbstractDataStream DataStream ServerDataStream',
    'fuel.transformers':
        'AgnosticSourcewiseTransformer AgnosticTransformer '
        'BackgroundProcess Batch Cache Cast ExpectsAxisLabels Filter '
        'FilterSources Flatten ForceFloatX Mapping Merge MultiProcessing '
        'Padding Rename ScaleAndShift SortMapping SourcewiseTransformer '
        'Transformer Unpack',
    'fuel.transformers._image': 'window_batch_bchw',
    'fuel.transformers.defaults':
        'rgb_images_from_encoded_bytes ToBytes uint8_pixels_to_floatX',
    'fuel.transformers.image':
        'ImagesFromBytes MinimumImageDimensions Random2DRotation '
        'RandomFixedSizeCrop',
    'fuel.transformers.sequences': 'NGrams Window',
    'fuel.utils':
        'buffer_ do_not_pickle_attributes find_in_data_path '
        'iterable_fancy_indexing lazy_property_factory remember_cwd Subset',
    'fuel.utils.cache': 'cache_file copy_from_server_to_local',
    'fuel.utils.disk': 'check_enough_space disk_usage safe_mkdir',
    'fuel.utils.formats': 'open_ tar_open',
    'fuel.utils.lock':
        'get_lock get_readlock get_writelock lock refresh_lock release_lock '
        'release_readlock release_writelock Unlocker',
    'fuel.utils.parallel': 'producer_consumer',
    'fuel.version': 'version',
}
PAIRS = [(module, name) for module, names in NAMES.items()
         for name in names.split()]


each_name = pytest.mark.parametrize(
    'module, name', PAIRS, ids=[f'{module}:{name}' for module, name in PAIRS])


@each_name
def test_old_name_can_be_imported(module, name):
    """A script's imports work as they did."""
    assert hasattr(importlib.import_module(module), name)


@each_name
def test_old_class_pickles_under_a_public_path(module, name):
    """A pickle names no private module, since that may move."""
    thing = getattr(importlib.import_module(module), name)
    if isinstance(thing, type) and thing.__module__.startswith('fuel.'):
        assert pickle.loads(pickle.dumps(thing)) is thing
        assert '._' not in thing.__module__


def test_every_module_imports_without_a_warning():
    """On this Python, in a fresh interpreter, compiled ones too.

    Parts of a bridge may miss the library that it leads to.
    """
    names = [info.name for info in pkgutil.walk_packages(
        fuel.__path__, 'fuel.')]
    assert {'fuel.datasets.hdf5', 'fuel.kernels.rows'} <= set(names)
    code = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        inside = (error.name or 'fuel').startswith('fuel')
        if inside or not name.startswith('fuel.interop.'):
            raise
"""
    assert (0, b'', b'') == run_python('-W', 'error', '-c', code, *names)
