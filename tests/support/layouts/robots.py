"""Files of robots and of reinforcement learning."""
import json

import h5py
import numpy

from support.layouts.miniature import Written, bounds_of, joined

LENGTHS = [3 + number % 5 for number in range(12)]
MASKS = {'train': [10, 2, 1, 0], 'valid': [11, 3]}


def robomimic(folder, rng):
    """Write demonstrations of robomimic, with masks."""
    path = folder / 'low_dim.hdf5'
    demos = [{
        'actions': rng.normal(size=(count, 7)),
        'rewards': rng.random(count),
        'dones': rng.integers(0, 2, count),
        'states': rng.normal(size=(count, 5)),
        'obs/agentview_image': rng.integers(0, 256, (count, 4, 4, 3), 'u1'),
        'obs/robot0_eef_pos': rng.normal(size=(count, 3)),
        'next_obs/robot0_eef_pos': rng.normal(size=(count, 3))}
        for count in LENGTHS]
    with h5py.File(path, 'w') as file:
        data = file.create_group('data')
        data.attrs['total'] = sum(LENGTHS)
        data.attrs['env_args'] = json.dumps({'env_name': 'Lift', 'type': 1})
        for number, arrays in enumerate(demos):
            demo = data.create_group(f'demo_{number}')
            demo.attrs['num_samples'] = LENGTHS[number]
            demo.attrs['model_file'] = '<mujoco/>'
            for name, array in arrays.items():
                demo.create_dataset(name, data=array, compression='gzip'
                                    if 'image' in name else None)
        for name, numbers in MASKS.items():
            file[f'mask/{name}'] = numpy.array(
                [f'demo_{number}' for number in numbers], 'S8')
    bounds = bounds_of(LENGTHS)
    return Written(
        str(path), {name: joined(demo[name] for demo in demos)
                    for name in demos[0]}, bounds,
        # In the order of the demonstrations.
        {name: [row for number in sorted(numbers)
                for row in range(bounds[number], bounds[number + 1])]
         for name, numbers in MASKS.items()})


def libero(folder, rng):
    """Write demonstrations of LIBERO, which has no masks."""
    path = folder / 'pick_up_the_bowl_demo.hdf5'
    lengths = LENGTHS[:4]
    demos = [{
        'actions': rng.normal(size=(count, 7)),
        'dones': rng.integers(0, 2, count, 'u1'),
        'rewards': rng.integers(0, 2, count, 'u1'),
        'robot_states': rng.normal(size=(count, 9)),
        'states': rng.normal(size=(count, 6)),
        'obs/agentview_rgb': rng.integers(0, 256, (count, 4, 4, 3), 'u1')}
        for count in lengths]
    with h5py.File(path, 'w') as file:
        data = file.create_group('data')
        for name in ('problem_info', 'bddl_file_name', 'env_args'):
            data.attrs[name] = '{}'
        data.attrs['num_demos'] = len(demos)
        for number, arrays in enumerate(demos):
            demo = data.create_group(f'demo_{number}')
            demo.attrs['num_samples'] = lengths[number]
            demo.attrs['init_state'] = rng.normal(size=6)
            for name, array in arrays.items():
                demo[name] = array
    return Written(str(path), {name: joined(demo[name] for demo in demos)
                               for name in demos[0]}, bounds_of(lengths))


def aloha(folder, rng):
    """Write ALOHA's episodes, a file each, ten of them."""
    lengths = LENGTHS[:11]
    episodes = [{
        'action': rng.normal(size=(count, 14)).astype('f4'),
        'observations/qpos': rng.normal(size=(count, 14)).astype('f4'),
        'observations/qvel': rng.normal(size=(count, 14)).astype('f4'),
        'observations/images/top': rng.integers(
            0, 256, (count, 4, 6, 3), 'u1')} for count in lengths]
    for number, arrays in enumerate(episodes):
        with h5py.File(folder / f'episode_{number}.hdf5', 'w') as file:
            file.attrs['sim'] = True
            for name, array in arrays.items():
                file.create_dataset(
                    name, data=array, chunks=(1, *array.shape[1:])
                    if 'images' in name else None)
    return Written(
        str(folder / 'episode_*.hdf5'),
        {name: joined(episode[name] for episode in episodes)
         for name in episodes[0]}, bounds_of(lengths))


def minari(folder, rng):
    """Write Minari's episodes, with a row more of observations."""
    data = folder / 'data'
    data.mkdir()
    (data / 'metadata.json').write_text('{"total_episodes": 12}')
    episodes = [{
        'actions': rng.normal(size=(count, 2)),
        'rewards': rng.random(count),
        'terminations': rng.integers(0, 2, count) > 0,
        'truncations': rng.integers(0, 2, count) > 0,
        'observations/position': rng.normal(size=(count + 1, 3)),
        'observations/goal/_index_0': rng.integers(0, 9, (count + 1, 2)),
        'infos/x': rng.random(count + 1)} for count in LENGTHS]
    with h5py.File(data / 'main_data.hdf5', 'w', track_order=True) as file:
        for number, arrays in enumerate(episodes):
            episode = file.create_group(f'episode_{number}')
            episode.attrs['id'] = number
            episode.attrs['total_steps'] = LENGTHS[number]
            episode.attrs['seed'] = 3
            for name, array in arrays.items():
                episode[name] = array
    values = {}
    for name in episodes[0]:
        if name.startswith(('observations', 'infos')):
            values[name] = joined(one[name][:-1] for one in episodes)
            values[f'next_{name}'] = joined(one[name][1:] for one in episodes)
        else:
            values[name] = joined(one[name] for one in episodes)
    return Written(str(folder), values, bounds_of(LENGTHS))


def d4rl(folder, rng):
    """Write D4RL's flat arrays, with ends of both kinds."""
    path = folder / 'hopper_medium-v2.hdf5'
    count = 60
    terminals, timeouts = numpy.zeros((2, count), bool)
    terminals[[7, 8, 30]] = timeouts[[8, 19, 50]] = True
    values = {
        'actions': rng.normal(size=(count, 3)).astype('f4'),
        'infos/qpos': rng.normal(size=(count, 6)),
        'observations': rng.normal(size=(count, 11)).astype('f4'),
        'rewards': rng.random(count).astype('f4'),
        'terminals': terminals, 'timeouts': timeouts}
    with h5py.File(path, 'w') as file:
        for name, array in values.items():
            file.create_dataset(name, data=array, compression='gzip')
        file['metadata/algorithm'] = 'SAC'
        file['metadata/policy/fc0/weight'] = rng.normal(size=(count, 4))
    ends = [end + 1 for end in (7, 8, 19, 30, 50)]
    return Written(str(path), values, [0, *ends, count])


def stable_worldmodel(folder, rng):
    """Write episodes one after the other, in arrays that grow."""
    path = folder / 'pusht.h5'
    lengths = numpy.array(LENGTHS, 'i4')
    count = int(lengths.sum())
    values = {
        'action': rng.normal(size=(count, 2)).astype('f4'),
        'pixels': rng.integers(0, 256, (count, 4, 4, 3), 'u1'),
        'step_idx': numpy.arange(count)}
    with h5py.File(path, 'w') as file:
        for name, array in values.items():
            file.create_dataset(name, data=array, chunks=(
                1, *array.shape[1:]), maxshape=(None, *array.shape[1:]))
        file['ep_len'] = lengths
        file['ep_offset'] = numpy.cumsum(lengths) - lengths
    return Written(str(path), values, bounds_of(LENGTHS))
