"""The limb tree from MuJoCo's own tables; for the ten tasks, the paper's table."""

import mujoco
import pytest
from robots import ARM, CART, crawler

from euda.body.morphology import driven_joints, from_model
from euda.errors import ModelError
from euda.tasks import table

PAPER = {  # n, d1, 1-, 2- and 3-DoF joints: table "Kinematic parameters"
    "cheetah_run": (7, 3, 6, 0, 0),
    "cheetah3d_run": (7, 6, 0, 0, 6),
    "hopper_hop": (5, 3, 4, 0, 0),
    "hopper3d_hop": (5, 6, 0, 0, 4),
    "walker_run": (7, 3, 6, 0, 0),
    "walker3d_run": (7, 6, 0, 0, 6),
    "quadruped_run": (13, 6, 8, 4, 0),
    "reacher_hard": (3, 0, 2, 0, 0),
    "humanoid_run": (13, 6, 5, 5, 2),
    "humanoid_stand": (13, 6, 5, 5, 2),
}
WELDED = {
    "quadruped_run": {"toe_front_left", "toe_front_right", "toe_back_right", "toe_back_left"},
    "reacher_hard": {"finger"},
    "humanoid_run": {"head", "right_hand", "left_hand"},
    "humanoid_stand": {"head", "right_hand", "left_hand"},
}


def morphology(xml):
    return from_model(mujoco.MjModel.from_xml_string(xml))


def test_the_papers_table():
    found = {}
    for name in table.TASKS:
        limbs = table.robot(name, table.load(name)).morphology
        found[name] = (limbs.n, limbs.d1, limbs.count(1), limbs.count(2), limbs.count(3))
        assert {limb.name for limb in limbs.welded} == WELDED.get(name, set())
        assert limbs.n == 1 + limbs.count(1) + limbs.count(2) + limbs.count(3)
    assert found == PAPER


def test_limbs_are_depth_first_with_their_parents():
    limbs = table.robot("cheetah_run", table.load("cheetah_run")).morphology.limbs
    assert [limb.name for limb in limbs] == ["torso", "bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot"]
    assert [limb.parent for limb in limbs] == [None, 0, 1, 2, 0, 4, 5]


def test_quadruped_has_tendons_activations_and_fewer_actions_than_hinges():
    body = table.robot("quadruped_run", table.load("quadruped_run"))
    assert len(body.morphology.actuators) == 12
    assert body.morphology.activations == 12
    assert len(body.morphology.tendons) == 12
    assert sum(limb.dofs for limb in body.morphology.limbs[1:]) == 16
    assert len(driven_joints(body.model)) == 16  # through tendons


def test_floating_root_of_an_unnamed_kind():
    limbs = morphology(crawler())
    assert (limbs.base, limbs.n, limbs.d1, limbs.count(1), limbs.count(2)) == ("free", 3, 6, 1, 1)
    assert [limb.name for limb in limbs.welded] == ["foot"]
    assert limbs.objects == ()


def test_a_welded_pedestal_is_the_root_of_a_fixed_arm():
    limbs = morphology(ARM)
    assert (limbs.base, limbs.d1, limbs.root.name, limbs.n) == ("fixed", 0, "pedestal", 3)
    assert [limb.dofs for limb in limbs.limbs] == [0, 2, 1]
    assert limbs.objects == (4,)


def test_ball_joints_count_three():
    limbs = morphology(CART)
    assert (limbs.count(1), limbs.count(3)) == (2, 1)


TWO = """<mujoco><worldbody>{}</worldbody><actuator><motor joint="a"/><motor joint="b"/></actuator></mujoco>""".format(
    "".join(
        f'<body name="arm_{n}" pos="{i} 0 1"><joint name="{n}"/><geom size=".1" pos=".2 0 0"/></body>'
        for i, n in enumerate("ab")
    )
)
LOOP = """<mujoco><worldbody><body name="base" pos="0 0 1"><freejoint/><geom size=".1"/>
<body name="one"><joint name="j1"/><geom size=".1" pos=".2 0 0"/></body>
<body name="two"><joint name="j2"/><geom size=".1" pos=".3 0 0"/></body></body></worldbody>
<equality><connect name="knot" body1="one" body2="two" anchor=".2 0 0"/></equality>
<actuator><motor joint="j1"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    ("xml", "says"),
    [
        (crawler().replace("actuator>", "custom>").split("<custom>")[0] + "</mujoco>", "no actuators"),
        (TWO, "holds 2 robots \\('arm_a', 'arm_b'\\)"),
        (LOOP, "'knot' closes a loop between 'one' and 'two'.*redundant.*--allow-loops"),
    ],
)
def test_refusals_say_what_is_wrong(xml, says):
    with pytest.raises(ModelError, match=says):
        morphology(xml)


def test_loops_can_be_allowed_and_couplings_are_no_loops():
    assert from_model(mujoco.MjModel.from_xml_string(LOOP), allow_loops=True).n == 3
    coupled = LOOP.replace(
        '<connect name="knot" body1="one" body2="two" anchor=".2 0 0"/>', '<joint joint1="j1" joint2="j2"/>'
    )
    assert morphology(coupled).n == 3
