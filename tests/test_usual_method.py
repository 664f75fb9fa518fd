"""What is trained where nobody names a method: the base's own where it fits, turned batches elsewhere."""

import json
from pathlib import Path

import pytest

from euda.runs.usual_method import usual_method
from euda.tasks.table import TASKS
from euda.terminal import cli

TRIPOD = str(Path(__file__).parents[1] / "src/euda/examples/tripod.xml")
ARM = """
<mujoco>
  <worldbody>
    <body name="arm">
      <joint name="pan" axis="0 0 1" damping="1"/>
      <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.05"/>
      <body name="hand" pos="0.5 0 0">
        <joint name="wrist" axis="0 0 1" damping="1"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.04"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="pan" gear="1"/><motor joint="wrist" gear="1"/></actuator>
</mujoco>
"""


def parts(capsys, *words):
    """Augmentation and frame of what `euda train` would train."""
    assert cli.main(["train", *words, "--dry-run"]) == 0
    printed = json.loads(capsys.readouterr().out)
    return printed["features"], printed["augmentation"]["name"], printed["frame"]


CANONICAL, ROTATE = ("limb", "none", "own"), ("limb", "rotate", "world")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), CANONICAL),
        (("--method", "rotate"), ROTATE),
        (("--base", "paper"), ROTATE),
        (("--share", "0.5"), ROTATE),
        (("--group", "all"), ROTATE),
        (("--near", "exact"), ROTATE),
        (("--features", "joint"), ("joint", "rotate", "world")),
        (("--augment", "none"), ("limb", "none", "world")),
    ],
)
def test_of_a_task(words, expected, capsys):
    assert parts(capsys, "quadruped_run", *words) == expected


@pytest.mark.parametrize("task", TASKS)
def test_every_task_shows_the_frame_of_the_default(task):
    from euda.runs import evaluation
    from euda.runs.resolution import resolve

    evaluation.refuse_unfit(resolve(task, usual_method("swift", None, {})))


def test_of_custom_robots(capsys, tmp_path):
    assert parts(capsys, TRIPOD, "--reward", "run", "--direction", "1", "0") == CANONICAL
    arm = tmp_path / "arm.xml"
    arm.write_text(ARM)
    words = [str(arm), "--reward", "reach", "--limb", "hand", "--target"]
    assert parts(capsys, *words, "0.5", "0.3", "0") == CANONICAL
    reward = tmp_path / "own_reward.py"
    reward.write_text("def calm(model, data):\n    return 1.0\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        assert parts(capsys, str(arm), "--reward", "own_reward:calm") == ROTATE  # nothing in it shows a frame
