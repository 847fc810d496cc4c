"""Files of particles, atoms, brains, speech, stars, and of no field."""
import h5py
import numpy

from support.layouts.miniature import Written, bounds_of, joined


def salt(folder, rng):
    """Write jets and their tracks in three files, joined in a virtual one."""
    jets, tracks = [], []
    for number in range(3):
        jet = numpy.zeros(
            10, [('pt', 'f4'), ('eta', '>f4'), ('flavour', 'i4')])
        track = numpy.zeros((10, 4), [('d0', 'f4'), ('valid', '?')])
        for name in ('pt', 'eta'):
            jet[name] = rng.normal(size=10)
        track['d0'] = rng.normal(size=(10, 4))
        track['valid'] = rng.integers(0, 2, (10, 4))
        with h5py.File(folder / f'part_{number}.h5', 'w') as file:
            file.create_dataset('jets', data=jet, compression='lzf')
            file.create_dataset('tracks', data=track, compression='gzip')
        jets.append(jet)
        tracks.append(track)
    path = folder / 'vds.h5'
    with h5py.File(path, 'w', libver='latest') as file:
        for name, arrays in (('jets', jets), ('tracks', tracks)):
            layout = h5py.VirtualLayout(
                (30, *arrays[0].shape[1:]), arrays[0].dtype)
            for number in range(3):
                layout[10 * number:10 * number + 10] = h5py.VirtualSource(
                    f'part_{number}.h5', name, arrays[number].shape)
            file.create_virtual_dataset(name, layout)
    return Written(str(path), {'jets': joined(jets), 'tracks': joined(tracks)})


def nested(folder, rng):
    """Write arrays of one length in groups, beside other objects."""
    path = folder / 'measured.h5'
    values = {'images': rng.integers(0, 256, (30, 3, 3), 'u1'),
              'labels/kind': rng.integers(0, 3, 30).astype('>i4'),
              'labels/name': numpy.array([f'é{i}' for i in range(30)], object)}
    with h5py.File(path, 'w') as file:
        for name, array in values.items():
            file[name] = array
        file['about/version'] = 3
        file['about/none'] = numpy.zeros((0, 4))
        file['about/gone'] = h5py.SoftLink('/nowhere')
        file['about/also'] = h5py.ExternalLink('nowhere.h5', '/')
        file.create_dataset('about/refs', (30,), h5py.ref_dtype)
    return Written(str(path), values)


def mace(folder, rng):
    """Write configurations of atoms in batches of three."""
    path = folder / 'train.h5'
    atoms = [2, 5, 3, 4, 1, 3, 6]
    configurations = [{
        'atomic_numbers': rng.integers(1, 9, count),
        'positions': rng.normal(size=(count, 3)),
        'cell': rng.normal(size=(3, 3)),
        'pbc': numpy.array([True, False, True]),
        'weight': numpy.array(1.),
        'properties/energy': numpy.array(rng.normal()),
        'properties/forces': rng.normal(size=(count, 3)),
        'property_weights/energy': numpy.array(1.)} for count in atoms]
    with h5py.File(path, 'w') as file:
        file.attrs['drop_last'] = False
        for number, arrays in enumerate(configurations):
            group = file.create_group(
                f'config_batch_{number // 3}/config_{number % 3}')
            for name, array in arrays.items():
                group[name] = array
            group['config_type'] = 'Default'
            group['properties/dipole'] = 'None'
            group['properties/stress'] = (
                'None' if number == 2 else rng.normal(size=(3, 3)))
    values = {name: [one[name] for one in configurations]
              for name in configurations[0]}
    values['config_type'] = numpy.array(['Default'] * len(atoms), object)
    return Written(str(path), values)


def spice(folder, rng):
    """Write molecules with several conformations."""
    path = folder / 'SPICE.hdf5'
    molecules = {f'molecule {number}': (2 + number % 3, 1 + number % 4)
                 for number in range(11)}
    values = {name: [] for name in (
        'atomic_numbers', 'conformations', 'dft_total_gradient',
        'formation_energy', 'smiles')}
    counts = []
    with h5py.File(path, 'w') as file:
        for name in sorted(molecules, key=lambda name: int(name.split()[1])):
            atoms, count = molecules[name]
            arrays = {
                'atomic_numbers': rng.integers(1, 9, atoms).astype('i2'),
                'conformations': rng.normal(
                    size=(count, atoms, 3)).astype('f4'),
                'dft_total_gradient': rng.normal(
                    size=(count, atoms, 3)).astype('f4'),
                'formation_energy': rng.normal(size=count)}
            for key, array in arrays.items():
                file[f'{name}/{key}'] = array
                values[key] += [array] * count if (
                    key == 'atomic_numbers') else list(array)
            file[f'{name}/smiles'] = numpy.array([f'C{atoms}'], object)
            values['smiles'] += [numpy.array([f'C{atoms}'], object)] * count
            counts.append(count)
    return Written(str(path), values, bounds_of(counts))


def ani(folder, rng):
    """Write molecules in groups of groups."""
    path = folder / 'ani_gdb_s01.h5'
    values = {name: [] for name in ('coordinates', 'energies', 'species')}
    counts = []
    with h5py.File(path, 'w') as file:
        for number in range(4):
            atoms, count = 2 + number % 2, 2 + number
            group = file.create_group(f'gdb11_s01/gdb11_s01-{number}')
            arrays = {'coordinates': rng.normal(
                size=(count, atoms, 3)).astype('f4'),
                'energies': rng.normal(size=count),
                'species': numpy.array([b'C', b'H', b'O'][:atoms])}
            for key, array in arrays.items():
                group[key] = array
                values[key] += [array] * count if key == 'species' else list(
                    array)
            counts.append(count)
    return Written(str(path), values, bounds_of(counts))


def returnn(folder, rng):
    """Write sequences with two targets, one of them without a row."""
    path = folder / 'speech.hdf'
    lengths = rng.integers(0, 5, (9, 3)).astype('i4')
    lengths[2, 0] = lengths[3, 1] = 0
    sums = lengths.sum(axis=0)
    arrays = {'inputs': rng.normal(size=(sums[0], 3)).astype('f4'),
              'targets/data/phones': rng.integers(0, 40, sums[1], 'i4'),
              'targets/data/words': rng.integers(0, 40, sums[2], 'i4')}
    with h5py.File(path, 'w') as file:
        file.attrs.update({'inputPattSize': 3, 'numSeqs': 9,
                           'numTimesteps': sums[0]})
        for name, array in arrays.items():
            file[name] = array
        file['seqLengths'] = lengths
        file['seqTags'] = numpy.array([f'seq-{i}' for i in range(9)], object)
        file.create_group('targets/size').attrs['phones'] = [40, 1]
        file['targets/labels/phones'] = numpy.array(['a', 'b'], object)
    values = {name: [array[stop - count:stop] for stop, count in zip(
        numpy.cumsum(lengths[:, place]), lengths[:, place], strict=True)]
        for place, (name, array) in enumerate(arrays.items())}
    values['seqTags'] = numpy.array([f'seq-{i}' for i in range(9)], object)
    return Written(str(path), values)


def nwb(folder, rng):
    """Write a recording of one clock."""
    path = folder / 'session.nwb'
    data, times = rng.normal(size=(20, 4)), numpy.arange(20.) / 30
    with h5py.File(path, 'w') as file:
        file.attrs.update({'nwb_version': '2.7.0', 'neurodata_type':
                           'NWBFile', 'namespace': 'core'})
        series = file.create_group('acquisition/lfp')
        series.attrs['neurodata_type'] = 'ElectricalSeries'
        series['data'], series['timestamps'] = data, times
        file['session_description'] = 'a test'
        trials = file.create_group('intervals/trials')
        trials['start_time'], trials['stop_time'] = [0., 1.], [1., 2.]
    return Written(str(path), {'acquisition/lfp/data': data,
                               'acquisition/lfp/timestamps': times}, [0, 20])


def torch_brain(folder, rng):
    """Write a recording as torch_brain has it."""
    path = folder / 'session.h5'
    values = {'cursor/position': rng.normal(size=(20, 2)),
              'cursor/timestamps': numpy.arange(20.)}
    with h5py.File(path, 'w') as file:
        file.attrs['object'] = 'Data'
        for name, array in values.items():
            file[name] = array
        file['cursor'].attrs['object'] = 'IrregularTimeSeries'
        file['cursor/timestamp_indices_1s'] = numpy.arange(20)
        domain = file.create_group('domain')
        domain.attrs['object'] = 'Interval'
        domain['start'], domain['end'] = [0.], [20.]
    return Written(str(path), values, [0, 20])


def universe(folder, rng):
    """Write objects of the sky, whose spectra differ in width."""
    widths, parts = {2: 5, 10: 7}, []
    for pixel, width in widths.items():
        (folder / f'healpix={pixel}').mkdir()
        arrays = {
            'object_id': numpy.array([f'{pixel}-{i}' for i in range(6)], 'S8'),
            'z': rng.random(6).astype('f4'),
            'spectrum_flux': rng.normal(size=(6, width)).astype('f4')}
        with h5py.File(folder / f'healpix={pixel}' / '001.hdf5', 'w') as file:
            for name, array in arrays.items():
                file[name] = array
        parts.append(arrays)
    return Written(str(folder), {
        'object_id': joined(part['object_id'] for part in parts),
        'z': joined(part['z'] for part in parts),
        'spectrum_flux': [row for part in parts
                          for row in part['spectrum_flux']]},
        bounds_of([6, 6]))


def matlab(folder, rng):
    """Write what MATLAB saves of 12 x 3 numbers and a column, reversed."""
    path = folder / 'data.mat'
    x, y = rng.normal(size=(3, 12)), rng.integers(0, 2, (1, 12), 'u1')
    with h5py.File(path, 'w', userblock_size=512) as file:
        file['x'], file['y'] = x, y
        file['x'].attrs['MATLAB_class'] = numpy.bytes_('double')
        file['y'].attrs['MATLAB_class'] = numpy.bytes_('logical')
        file['y'].attrs['MATLAB_int_decode'] = numpy.int32(1)
        file['title'] = numpy.array([[72], [105]], 'u2')
        file['title'].attrs['MATLAB_class'] = numpy.bytes_('char')
    with open(path, 'r+b') as raw:
        raw.write(b'MATLAB 7.3 MAT-file, Platform: GLNXA64'.ljust(512))
    return Written(str(path), {'x': x.T, 'y': y.T})
