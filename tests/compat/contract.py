"""Promises of the manual of Fuel 0.2.0, as data.

`SIGNATURES` has a line for each function, class (with its constructor) and,
after a dot, method of the class above. Defaults are Python expressions;
``...`` stands for any.
`BASES` says what each class derives from, `ATTRIBUTES` which attributes an
object of it has, and `CLASS_ATTRIBUTES` which values the class has.
"""

SIGNATURES = {
    'fuel.converters.base': """
        check_exists(required_files)
        fill_hdf5_file(h5file, data)
        progress_bar(name, maxval, prefix='Converting')
    """,
    'fuel.converters.adult': """
        convert_adult(directory, output_directory,
                      output_filename='adult.hdf5')
        convert_to_one_hot(y)
        fill_subparser(subparser)
    """,
    'fuel.converters.caltech101_silhouettes': """
        convert_silhouettes(size, directory, output_directory,
                            output_filename=None)
        fill_subparser(subparser)
    """,
    'fuel.converters.binarized_mnist': """
        convert_binarized_mnist(directory, *args, **kwargs)
        fill_subparser(subparser)
    """,
    'fuel.converters.celeba': """
        convert_celeba(which_format, directory, output_directory,
                       output_filename=None)
        fill_subparser(subparser)
    """,
    'fuel.converters.cifar10': """
        convert_cifar10(directory, *args, **kwargs)
        fill_subparser(subparser)
    """,
    'fuel.converters.cifar100': """
        convert_cifar100(directory, *args, **kwargs)
        fill_subparser(subparser)
    """,
    'fuel.converters.iris': """
        convert_iris(directory, output_directory,
                     output_filename='iris.hdf5')
        fill_subparser(subparser)
    """,
    'fuel.converters.mnist': """
        convert_mnist(directory, *args, **kwargs)
        fill_subparser(subparser)
        read_mnist_images(filename, dtype=None)
        read_mnist_labels(filename)
    """,
    'fuel.converters.svhn': """
        convert_svhn(which_format, directory, output_directory,
                     output_filename=None)
        convert_svhn_format_1(directory, *args, **kwargs)
        convert_svhn_format_2(directory, *args, **kwargs)
        fill_subparser(subparser)
    """,
    'fuel.converters.ilsvrc2010': """
        fill_subparser(subparser)
    """,
    'fuel.streams': """
        class AbstractDataStream(iteration_scheme=None, axis_labels=None)
        .close()
        .get_data(request=None)
        .get_epoch_iterator(as_dict=False)
        .iterate_epochs(as_dict=False)
        .next_epoch()
        .reset()
        class DataStream(dataset, **kwargs)
        .close()
        .default_stream(dataset, **kwargs)
        .get_data(request=None)
        .get_epoch_iterator(**kwargs)
        .next_epoch()
        .reset()
        class ServerDataStream(sources, produces_examples, host='localhost',
                               port=5557, hwm=10, axis_labels=None)
        .close()
        .connect()
        .get_data(request=None)
        .get_epoch_iterator(**kwargs)
        .next_epoch()
        .reset()
    """,
    'fuel.iterator': """
        class DataIterator(data_stream, request_iterator=None,
                           as_dict=False)
    """,
    'fuel.server': """
        start_server(data_stream, port=5557, hwm=10)
        send_arrays(socket, arrays, stop=False)
        recv_arrays(socket)
    """,
    'fuel.datasets.base': """
        class Dataset(sources=None, axis_labels=None)
        .apply_default_transformers(stream)
        .close(state)
        .filter_sources(data)
        .get_data(state=None, request=None)
        .get_example_stream()
        .next_epoch(state)
        .open()
        .reset(state)
        class IndexableDataset(indexables, start=None, stop=None, **kwargs)
        .get_data(state=None, request=None)
        class IterableDataset(iterables, **kwargs)
        .get_data(state=None, request=None)
        .open()
    """,
    'fuel.datasets.hdf5': """
        class H5PYDataset(file_or_path, which_sets, subset=None,
                          load_in_memory=False, driver=None,
                          sort_indices=True, **kwargs)
        .open()
        .close(state)
        .reset(state)
        .load()
        .get_data(state=None, request=None)
        .create_split_array(split_dict)
        .get_all_splits(h5file)
        .get_all_sources(h5file)
        .get_provided_sources(h5file, split)
        .get_vlen_sources(h5file)
        .get_axis_labels(h5file)
        .get_subsets(h5file, splits, sources)
        class PytablesDataset(path, sources, start=0, stop=None,
                              data_node='Data', sources_in_file=None)
        .open_file(path)
        .close_file()
        .load()
        .get_data(state=None, request=None)
    """,
    'fuel.datasets.adult': 'class Adult(which_sets, **kwargs)',
    'fuel.datasets.billion': """
        class OneBillionWord(which_set, which_partitions, dictionary,
                             **kwargs)
    """,
    'fuel.datasets.caltech101_silhouettes': """
        class CalTech101Silhouettes(which_sets, size=28,
                                    load_in_memory=True, **kwargs)
    """,
    'fuel.datasets.binarized_mnist': """
        class BinarizedMNIST(which_sets, load_in_memory=True, **kwargs)
    """,
    'fuel.datasets.celeba': 'class CelebA(which_format, which_sets, **kwargs)',
    'fuel.datasets.cifar10': 'class CIFAR10(which_sets, **kwargs)',
    'fuel.datasets.cifar100': 'class CIFAR100(which_sets, **kwargs)',
    'fuel.datasets.dogs_vs_cats': 'class DogsVsCats(which_sets, **kwargs)',
    'fuel.datasets.iris': 'class Iris(which_sets, **kwargs)',
    'fuel.datasets.mnist': 'class MNIST(which_sets, **kwargs)',
    'fuel.datasets.svhn': 'class SVHN(which_format, which_sets, **kwargs)',
    'fuel.datasets.text': """
        class TextFile(files, dictionary, bos_token='<S>', eos_token='</S>',
                       unk_token='<UNK>', level='word', preprocess=None,
                       encoding=None)
        .get_data(state=None, request=None)
        .open()
    """,
    'fuel.datasets.toy': """
        class Spiral(num_examples=1000, classes=1, cycles=1.0, noise=0.0,
                     **kwargs)
        class SwissRoll(num_examples=1000, noise=0.0, **kwargs)
    """,
    'fuel.downloaders.base': """
        default_downloader(directory, urls, filenames, url_prefix=None,
                           clear=False)
        download(url, file_handle, chunk_size=...)
        ensure_directory_exists(directory)
        filename_from_url(url, path=None)
        progress_bar(name, maxval)
    """,
    **{f'fuel.downloaders.{name}': 'fill_subparser(subparser)'
       for name in ('adult', 'binarized_mnist', 'celeba', 'cifar10',
                    'cifar100', 'dogs_vs_cats', 'iris', 'mnist')},
    'fuel.downloaders.caltech101_silhouettes': """
        fill_subparser(subparser)
        silhouettes_downloader(size, **kwargs)
    """,
    'fuel.downloaders.svhn': """
        fill_subparser(subparser)
        svhn_downloader(which_format, directory, clear=False)
    """,
    'fuel.schemes': """
        class IterationScheme()
        .get_request_iterator()
        class BatchScheme(examples, batch_size)
        class BatchSizeScheme()
        class IndexScheme(examples)
        class ConcatenatedScheme(schemes)
        .get_request_iterator()
        class ConstantScheme(batch_size, num_examples=None, times=None)
        .get_request_iterator()
        class SequentialExampleScheme(examples)
        .get_request_iterator()
        class SequentialScheme(examples, batch_size)
        .get_request_iterator()
        class ShuffledExampleScheme(*args, **kwargs)
        .get_request_iterator()
        class ShuffledScheme(*args, **kwargs)
        .get_request_iterator()
        cross_validation(scheme_class, num_examples, num_folds, strict=True,
                         **kwargs)
    """,
    'fuel.transformers.defaults': """
        class ToBytes(stream, **kwargs)
        .transform_source_batch(batch, _)
        .transform_source_example(example, _)
        rgb_images_from_encoded_bytes(which_sources)
        uint8_pixels_to_floatX(which_sources)
    """,
    'fuel.transformers.image': """
        class ImagesFromBytes(data_stream, color_mode='RGB', **kwargs)
        .transform_source_batch(batch, source_name)
        .transform_source_example(example, source_name)
        class MinimumImageDimensions(data_stream, minimum_shape,
                                     resample='nearest', **kwargs)
        .transform_source_batch(batch, source_name)
        .transform_source_example(example, source_name)
        class Random2DRotation(data_stream, maximum_rotation=math.pi,
                               resample='nearest', **kwargs)
        .transform_source_batch(source, source_name)
        .transform_source_example(example, source_name)
        class RandomFixedSizeCrop(data_stream, window_shape, **kwargs)
        .transform_source_batch(source, source_name)
        .transform_source_example(example, source_name)
    """,
    'fuel.transformers.sequences': """
        class NGrams(ngram_order, *args, **kwargs)
        .get_data(*args, **kwargs)
        class Window(offset, source_window, target_window, overlapping,
                     data_stream, target_source='targets', **kwargs)
        .get_data(request=None)
    """,
    'fuel.transformers': """
        class Transformer(data_stream, produces_examples=None, **kwargs)
        .close()
        .get_data(request=None)
        .get_epoch_iterator(**kwargs)
        .next_epoch()
        .reset()
        .transform_batch(batch)
        .transform_example(example)
        class AgnosticTransformer(data_stream, produces_examples=None,
                                  **kwargs)
        .transform_any(data)
        .transform_batch(batch)
        .transform_example(example)
        class SourcewiseTransformer(data_stream, produces_examples,
                                    which_sources=None, **kwargs)
        .transform_batch(batch)
        .transform_example(example)
        .transform_source_batch(source_batch, source_name)
        .transform_source_example(source_example, source_name)
        class AgnosticSourcewiseTransformer(data_stream, produces_examples,
                                            which_sources=None, **kwargs)
        .transform_any(data)
        .transform_any_source(source_data, source_name)
        class BackgroundProcess(data_stream, max_batches)
        .get_next_data()
        .main()
        class Batch(data_stream, iteration_scheme, strictness=0, **kwargs)
        .get_data(request=None)
        class Cache(data_stream, iteration_scheme, **kwargs)
        .get_data(request=None)
        .get_epoch_iterator(**kwargs)
        class Cast(data_stream, dtype, **kwargs)
        .transform_any_source(source_data, _)
        class ExpectsAxisLabels()
        .verify_axis_labels(expected, actual, source_name)
        class Filter(data_stream, predicate, **kwargs)
        .get_epoch_iterator(**kwargs)
        class FilterSources(data_stream, sources, **kwargs)
        .transform_any(data)
        class Flatten(data_stream, **kwargs)
        .transform_source_batch(source_batch, _)
        .transform_source_example(source_example, _)
        class ForceFloatX(data_stream, **kwargs)
        .transform_any_source(source_data, _)
        class Mapping(data_stream, mapping, add_sources=None,
                      mapping_accepts=list, **kwargs)
        .get_data(request=None)
        class Merge(data_streams, sources, axis_labels=None)
        .close()
        .get_data(request=None)
        .get_epoch_iterator(**kwargs)
        .next_epoch()
        .reset()
        class MultiProcessing(data_stream, max_store=100, **kwargs)
        .get_data(request=None)
        class Padding(data_stream, mask_sources=None, mask_dtype=None,
                      **kwargs)
        .transform_batch(batch)
        class Rename(data_stream, names, on_non_existent='raise', **kwargs)
        .transform_any(data)
        class ScaleAndShift(data_stream, scale, shift, **kwargs)
        .transform_any_source(source_data, _)
        class SortMapping(key, reverse=False)
        .__call__(batch)
        class Unpack(data_stream, **kwargs)
        .get_data(request=None)
    """,
    'fuel.transformers._image': """
        window_batch_bchw(batch, height_offsets, width_offsets, out)
    """,
    'fuel.utils': """
        class Subset(list_or_slice, original_num_examples)
        .empty_subset(original_num_examples)
        .get_list_representation()
        .index_within_subset(indexable, subset_request, sort_indices=False)
        .slice_to_numerical_args(slice_, num_examples)
        .sorted_fancy_indexing(indexable, request)
        .subset_of(subset, list_or_slice)
        do_not_pickle_attributes(*lazy_properties)
        find_in_data_path(filename)
        iterable_fancy_indexing(iterable, request)
        lazy_property_factory(lazy_property)
        remember_cwd()
    """,
    'fuel.utils.cache': """
        cache_file(filename)
        copy_from_server_to_local(dataset_remote_dir, dataset_local_dir,
                                  remote_fname, local_fname)
    """,
    'fuel.utils.parallel': """
        producer_consumer(producer, consumer, addr='tcp://127.0.0.1',
                          port=None, context=None)
    """,
    'fuel.config_parser': """
        extra_downloader_converter(value)
        multiple_paths_parser(value)
        class Configuration()
        .add_config(key, type_, default=..., env_var=None)
        .load_yaml()
    """,
}

BASES = {
    'fuel.streams': {
        'DataStream': 'AbstractDataStream',
        'ServerDataStream': 'AbstractDataStream'},
    'fuel.datasets.base': {
        'IndexableDataset': 'Dataset', 'IterableDataset': 'Dataset'},
    'fuel.datasets': {
        **dict.fromkeys(
            ['Adult', 'BinarizedMNIST', 'CalTech101Silhouettes', 'CelebA',
             'CIFAR10', 'CIFAR100', 'DogsVsCats', 'Iris', 'MNIST', 'SVHN'],
            'H5PYDataset'),
        'H5PYDataset': 'Dataset', 'TextFile': 'Dataset',
        'OneBillionWord': 'TextFile'},
    'fuel.datasets.toy': {
        'Spiral': 'fuel.datasets.IndexableDataset',
        'SwissRoll': 'fuel.datasets.IndexableDataset'},
    'fuel.schemes': {
        'BatchScheme': 'IterationScheme',
        'BatchSizeScheme': 'IterationScheme',
        'ConcatenatedScheme': 'IterationScheme',
        'ConstantScheme': 'BatchSizeScheme',
        'IndexScheme': 'IterationScheme',
        'SequentialExampleScheme': 'IndexScheme',
        'SequentialScheme': 'BatchScheme',
        'ShuffledExampleScheme': 'IndexScheme',
        'ShuffledScheme': 'BatchScheme'},
    'fuel.transformers': {
        'Transformer': 'fuel.streams.AbstractDataStream',
        'AgnosticTransformer': 'Transformer',
        'SourcewiseTransformer': 'Transformer',
        'AgnosticSourcewiseTransformer':
            'AgnosticTransformer SourcewiseTransformer',
        'Batch': 'Transformer', 'Cache': 'Transformer',
        'Cast': 'AgnosticSourcewiseTransformer',
        'Filter': 'Transformer', 'FilterSources': 'AgnosticTransformer',
        'Flatten': 'SourcewiseTransformer',
        'ForceFloatX': 'AgnosticSourcewiseTransformer',
        'Mapping': 'Transformer',
        'Merge': 'fuel.streams.AbstractDataStream',
        'MultiProcessing': 'Transformer', 'Padding': 'Transformer',
        'Rename': 'AgnosticTransformer',
        'ScaleAndShift': 'AgnosticSourcewiseTransformer',
        'Unpack': 'Transformer'},
    'fuel.transformers.defaults': {
        'ToBytes': 'fuel.transformers.SourcewiseTransformer'},
    'fuel.transformers.image': {
        'ImagesFromBytes': 'fuel.transformers.SourcewiseTransformer',
        **dict.fromkeys(
            ['MinimumImageDimensions', 'Random2DRotation',
             'RandomFixedSizeCrop'],
            'fuel.transformers.SourcewiseTransformer '
            'fuel.transformers.ExpectsAxisLabels')},
    'fuel.transformers.sequences': {
        'Window': 'fuel.transformers.Transformer', 'NGrams': 'Window'},
    'fuel.exceptions': {
        'AxisLabelsMismatchError': 'builtins.ValueError',
        'ConfigurationError': 'builtins.Exception',
        'MissingInputFiles': 'builtins.Exception',
        'NeedURLPrefix': 'builtins.Exception'},
}

CLASS_ATTRIBUTES = {
    'fuel.datasets.base': {
        'Dataset.default_transformers': (),
        'Dataset.provides_sources': None,
        'IterableDataset.example_iteration_scheme': None},
    'fuel.datasets.text': {
        'TextFile.example_iteration_scheme': None,
        'TextFile.provides_sources': ('features',)},
    'fuel.datasets': {
        f'{name}.filename': f'{file}.hdf5' for name, file in {
            'Adult': 'adult', 'BinarizedMNIST': 'binarized_mnist',
            'CIFAR10': 'cifar10', 'CIFAR100': 'cifar100',
            'DogsVsCats': 'dogs_vs_cats', 'Iris': 'iris',
            'MNIST': 'mnist'}.items()},
    'fuel.schemes': {
        'BatchScheme.requests_examples': False,
        'BatchSizeScheme.requests_examples': False,
        'IndexScheme.requests_examples': True},
}

# Names that modules passed on from others.
RE_EXPORTS = {
    'fuel.converters.base.MissingInputFiles':
        'fuel.exceptions.MissingInputFiles',
    'fuel.downloaders.base.NeedURLPrefix': 'fuel.exceptions.NeedURLPrefix',
    'fuel.config_parser.ConfigurationError':
        'fuel.exceptions.ConfigurationError',
    'fuel.transformers.AbstractDataStream':
        'fuel.streams.AbstractDataStream',
    'fuel.transformers.AxisLabelsMismatchError':
        'fuel.exceptions.AxisLabelsMismatchError',
    'fuel.transformers.image.SourcewiseTransformer':
        'fuel.transformers.SourcewiseTransformer',
    'fuel.transformers.image.ExpectsAxisLabels':
        'fuel.transformers.ExpectsAxisLabels',
    'fuel.datasets.Dataset': 'fuel.datasets.base.Dataset',
    'fuel.datasets.H5PYDataset': 'fuel.datasets.hdf5.H5PYDataset',
    'fuel.config': 'fuel.config_parser.config',
}
