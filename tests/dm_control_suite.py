"""dm_control's own environments, untouched, to compare with."""

import numpy as np

from euda.tasks import dm_control_tasks  # first: it imports dm_control without a screen


def load_original(domain, task, seed):
    with dm_control_tasks.quiet_compile():
        return dm_control_tasks.suite.load(domain, task, task_kwargs={"random": np.random.RandomState(seed)})
