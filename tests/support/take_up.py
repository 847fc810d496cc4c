"""Take up saved states in a new interpreter, and write what follows.

python -m support.take_up FOLDER SAVED RESULTS
"""
import json
import pickle
import sys
from pathlib import Path

from support import pipelines


def follow(stream, epoch):
    """Return the rest of an epoch, the next epoch, and the requests."""
    calls = pipelines.count_requests(stream)
    rest = [pipelines.digest(data) for data in epoch]
    count = len(calls)
    following = [pipelines.digest(data)
                 for data in stream.get_epoch_iterator()]
    stream.close()
    return rest, following, count


def main(folder, saved, results):
    """Take up every saved state."""
    followed = []
    for name, kind, payload in pickle.loads(Path(saved).read_bytes()):
        if kind == 'state':
            stream = pipelines.build(name, folder)
            stream.load_state_dict(json.loads(payload))
            followed.append(follow(stream, stream.get_epoch_iterator()))
        else:
            followed.append(follow(*pickle.loads(payload)))
    Path(results).write_bytes(pickle.dumps(followed))


if __name__ == '__main__':
    main(*sys.argv[1:])
