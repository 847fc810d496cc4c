"""The steps around a fork have one order."""
import json
import subprocess
import sys

from fuel.utils.forks import Step

SCRIPT = """
import json, os
from fuel.utils.forks import Step, at_fork
seen = []
def record(step, moment):
    return lambda: seen.append((moment, step.name))
# The order of the registrations makes no difference.
for step in sorted(Step, key=lambda step: step.name):
    at_fork(step, before=record(step, 'before'),
            in_parent=record(step, 'parent'), in_child=record(step, 'child'))
reading, writing = os.pipe()
if not os.fork():
    os.write(writing, json.dumps(seen).encode())
    os._exit(0)
os.wait()
print(json.dumps([seen, json.loads(os.read(reading, 10000))]))
"""


def test_handlers_around_a_fork_run_in_the_order_of_the_steps():
    """They run in their order before a fork, and the other way round after
    it."""
    done = subprocess.run([sys.executable, '-c', SCRIPT], check=True,
                          capture_output=True, text=True, timeout=60)
    names = [step.name for step in Step]
    for seen, moment in zip(json.loads(done.stdout), ('parent', 'child'),
                            strict=True):
        assert [tuple(one) for one in seen] == [
            *(('before', name) for name in names),
            *((moment, name) for name in reversed(names))]
