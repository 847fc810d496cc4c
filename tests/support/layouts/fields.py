"""Files of fields: weather, simulations, netCDF."""
import h5py
import numpy

from support.layouts.miniature import Written, bounds_of, joined


def the_well(folder, rng):
    """Write simulations of The Well, with splits in folders."""
    counts = {'train': (2, 5), 'valid': (1, 4), 'test': (1, 5)}
    parts, splits, bounds, first = [], {}, [0], 0
    for split in sorted(counts):
        samples, steps = counts[split]
        (folder / 'data' / split).mkdir(parents=True)
        fields = {
            't0_fields/pressure': rng.normal(
                size=(samples, steps, 4, 3)).astype('f4'),
            't0_fields/mask': rng.normal(size=(samples, 4, 3)).astype('f4'),
            't1_fields/velocity': rng.normal(
                size=(samples, steps, 4, 3, 2)).astype('f4'),
            't1_fields/wind': rng.normal(size=(steps, 2)).astype('f4'),
            'scalars/viscosity': rng.normal(size=()).astype('f4')}
        time = numpy.arange(steps, dtype='f4')
        with h5py.File(folder / 'data' / split / 'fluid.hdf5', 'w') as file:
            file.attrs.update({
                'dataset_name': 'fluid', 'grid_type': 'cartesian',
                'n_spatial_dims': 2, 'n_trajectories': samples,
                'simulation_parameters': ['viscosity']})
            for name in ('t0_fields', 't1_fields', 't2_fields', 'dimensions',
                         'scalars', 'boundary_conditions'):
                file.create_group(name)
            for path, array in fields.items():
                file[path] = array
                varies = {'pressure': (True, True), 'velocity': (True, True),
                          'mask': (True, False), 'wind': (False, True),
                          'viscosity': (False, False)}[path.split('/')[1]]
                file[path].attrs['sample_varying'] = varies[0]
                file[path].attrs['time_varying'] = varies[1]
            file['dimensions/time'] = time
            file['dimensions/x'] = numpy.arange(4, dtype='f4')
            file['boundary_conditions/x/mask'] = numpy.ones(4, bool)
        rows = samples * steps
        parts.append({
            't0_fields/pressure': fields['t0_fields/pressure'].reshape(
                rows, 4, 3),
            't0_fields/mask': fields['t0_fields/mask'].repeat(steps, 0),
            't1_fields/velocity': fields['t1_fields/velocity'].reshape(
                rows, 4, 3, 2),
            't1_fields/wind': numpy.tile(
                fields['t1_fields/wind'], (samples, 1)),
            'scalars/viscosity': numpy.full(
                rows, fields['scalars/viscosity']),
            'dimensions/time': numpy.tile(time, samples)})
        splits[split] = list(range(first, first + rows))
        bounds += range(first + steps, first + rows + 1, steps)
        first += rows
    return Written(str(folder), {
        name: joined(part[name] for part in parts) for name in parts[0]},
        bounds, splits)


def makani(folder, rng):
    """Write fields of the weather, a file for each year."""
    years, first = [], 0
    for year in (2017, 2018):
        fields = rng.normal(size=(6, 2, 3, 4)).astype('f4')
        times = first + 21600. * numpy.arange(6)
        first = times[-1] + 21600.
        with h5py.File(folder / f'{year}.h5', 'w') as file:
            file.create_dataset(
                'fields', data=fields, maxshape=(None, 2, 3, 4))
            file.create_dataset('timestamp', data=times, maxshape=(None,))
            file['channel'] = numpy.array([b'u10m', b't2m'])
            file['lat'], file['lon'] = numpy.arange(3.), numpy.arange(4.)
            for axis, name in enumerate(('timestamp', 'channel', 'lat',
                                         'lon')):
                file[name].make_scale(name)
                file['fields'].dims[axis].attach_scale(file[name])
        years.append({'fields': fields, 'timestamp': times})
    return Written([str(folder / '2017.h5'), str(folder / '2018.h5')],
                   {name: joined(year[name] for year in years)
                    for name in years[0]}, [0, 12])


def netcdf(folder, rng):
    """Write what netCDF4 writes: packed numbers along an unlimited time."""
    path = folder / 'weather.nc'
    packed = rng.integers(-9, 9, (8, 3, 4)).astype('i2')
    packed[2, 1, 1] = -99
    rain = rng.random((8, 3)).astype('f4')
    with h5py.File(path, 'w') as file:
        file.attrs['_NCProperties'] = 'version=2,netcdf=4.9.2,hdf5=1.14.2'
        file.create_dataset('time', data=numpy.arange(8.), maxshape=(None,))
        file['lat'] = numpy.arange(3.)
        file['lon'] = numpy.arange(4, dtype='>f4')
        for number, name in enumerate(('time', 'lat', 'lon')):
            file[name].make_scale(name)
            file[name].attrs['_Netcdf4Dimid'] = numpy.int32(number)
        temperature = file.create_dataset(
            't2m', data=packed, maxshape=(None, 3, 4))
        temperature.attrs['scale_factor'] = numpy.array([.25])
        temperature.attrs['add_offset'] = numpy.array([270.])
        temperature.attrs['_FillValue'] = numpy.array([-99], 'i2')
        file.create_dataset('rain', data=rain, maxshape=(None, 3))
        for name in ('t2m', 'rain'):
            for axis in range(file[name].ndim):
                file[name].dims[axis].attach_scale(
                    file[('time', 'lat', 'lon')[axis]])
        file['land'] = rng.integers(0, 2, (3, 4), 'u1')
        for axis, name in enumerate(('lat', 'lon')):
            file['land'].dims[axis].attach_scale(file[name])
    values = packed.astype('f8') * .25 + 270.
    values[packed == -99] = numpy.nan
    return Written(str(path), {
        'rain': rain, 't2m': values, 'time': numpy.arange(8.)}, [0, 8])


def pdebench(folder, rng):
    """Write solutions of one equation, with as many places as samples."""
    path = folder / 'advection.hdf5'
    tensor = rng.normal(size=(6, 5, 6)).astype('f4')
    with h5py.File(path, 'w') as file:
        file['tensor'] = tensor
        file['x-coordinate'] = numpy.arange(6, dtype='f4')
        file['t-coordinate'] = numpy.arange(6, dtype='f4')
    return Written(str(path), {'tensor': tensor})


def pdebench_groups(folder, rng):
    """Write solutions in a group each."""
    path = folder / 'shallow_water.h5'
    data = rng.normal(size=(11, 4, 3, 3, 1)).astype('f4')
    with h5py.File(path, 'w') as file:
        for number, solution in enumerate(data):
            file[f'{number:04d}/data'] = solution
            for axis, count in (('t', 4), ('x', 3), ('y', 3)):
                file[f'{number:04d}/grid/{axis}'] = numpy.arange(count)
    return Written(str(path), {'data': data.reshape(-1, 3, 3, 1)},
                   bounds_of([4] * 11))
