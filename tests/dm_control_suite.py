"""dm_control's own environments, untouched, to compare with."""

import numpy as np

from euda.body import suite  # first: it imports dm_control without a screen


def load_original(domain, task, seed):
    with suite.quiet_compile():
        return suite.suite.load(domain, task, task_kwargs={"random": np.random.RandomState(seed)})
