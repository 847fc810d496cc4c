"""Deal tests to the processes of pytest-xdist."""
from xdist.scheduler import LoadScopeScheduling


def schedule_by(places, config, log):
    """Return a scheduler that gives the tests of each place to one process.

    Parameters
    ----------
    places : sequence of str
        How the names of tests begin. Other tests are dealt one by one.
    config, log
        As the hook of pytest-xdist takes them.

    """
    class Scheduling(LoadScopeScheduling):
        """Deal tests from both ends of the list.

        Most of those at its beginning compute, and most at its end wait: for
        servers, workers and links. One of each leaves no processor idle.
        """

        def _split_scope(self, nodeid):
            return next((place for place in places
                         if nodeid.startswith(place)), nodeid)

        def _assign_work_unit(self, node):
            if self.nodes.index(node) % 2 and len(self.workqueue) > 1:
                last = next(reversed(self.workqueue))
                # Places come first: their tests take longest.
                if len(next(iter(self.workqueue.values()))) == 1:
                    self.workqueue.move_to_end(last, last=False)
            super()._assign_work_unit(node)

        def mark_test_complete(self, node, item_index, duration=0):
            """Forget a unit that is complete: each event counts the others."""
            nodeid = self.registered_collections[node][item_index]
            scope = self._split_scope(nodeid)
            super().mark_test_complete(node, item_index, duration)
            if all(self.assigned_work[node][scope].values()):
                del self.assigned_work[node][scope]

    return Scheduling(config, log)
