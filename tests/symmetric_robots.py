"""Robots of our own whose symmetries are known because they were built that way."""

import math

import mujoco

HEAD = '<mujoco model="{name}"><compiler angle="degree"/><option timestep="0.005" cone="{cone}"/>'
FLOOR = '<geom name="floor" type="plane" size="0 0 1"/>'
SIDES = ("left", "right")


def star(
    legs: int = 4, *, turned: float = 0.0, askew: float = 0.0, chiral: bool = False, joint: str = "hinges",
    payload: float = 0.0, cone: str = "elliptic",
) -> mujoco.MjModel:  # fmt: skip
    """A disc with equal legs around it, on a floor: dihedral, or cyclic if every leg is bent to its left.

    `turned` turns the legs against the frame of the disc, and `askew` gives every second body a frame that is turned
    in itself (degrees), which changes nothing that moves. `payload` is a share of the mass, hung beside the centre.
    """
    parts = "".join(_leg(i, 360 * i / legs + turned, askew, chiral, joint) for i in range(legs))
    load = f'<geom type="sphere" size=".02" pos=".02 .06 .03" mass="{payload * 3}" contype="0" conaffinity="0"/>'
    names = [f"{part}{i}" for i in range(legs) for part in (("swing", "lift") if joint == "hinges" else ())]
    motors = "".join(f'<motor name="{n}" joint="{n}" gear="2" ctrlrange="-1 1"/>' for n in names)
    if joint == "ball":
        motors = "".join(
            f'<motor name="{axis}{i}" joint="ball{i}" gear="{gear}" ctrlrange="-1 1"/>'
            for i in range(legs)
            for axis, gear in (("twist", "0 0 2"), ("raise", "0 2 0"))
        )
    return mujoco.MjModel.from_xml_string(
        HEAD.format(name=f"star{legs}", cone=cone)
        + f'<worldbody>{FLOOR}<body name="disc" pos="0 0 .25"><freejoint name="root"/>'
        f'<geom name="disc" type="cylinder" size=".15 .03" mass="2"/>{load if payload else ""}{parts}</body>'
        "</worldbody>"
        f"<actuator>{motors}</actuator></mujoco>"
    )


def _leg(i: int, angle: float, askew: float, chiral: bool, joint: str) -> str:
    bend = ".05" if chiral else "0"
    joints = (
        f'<joint name="swing{i}" axis="0 0 1" range="-40 40" damping=".1"/>'
        f'<joint name="lift{i}" axis="0 1 0" range="-50 50" damping=".1"/>'
        if joint == "hinges"
        else f'<joint name="ball{i}" type="ball" range="0 50" damping=".1"/>'
    )
    x, y = 0.15 * math.cos(math.radians(angle)), 0.15 * math.sin(math.radians(angle))
    c, s = math.cos(math.radians(askew)), math.sin(math.radians(askew))
    # The shin's frame is turned by `askew` about its own x axis, and what is in it turned back: nothing moves.
    knee = f'<joint name="knee{i}" axis="0 {c} {-s}" range="-30 60" damping=".1" stiffness="1"/>'
    foot = _turned_back(".1", bend, "-.15", askew if i % 2 else 0)
    return (
        f'<body name="leg{i}" pos="{x!r} {y!r} 0" euler="0 0 {angle}">{joints}'
        f'<geom name="leg{i}" type="capsule" fromto="0 0 0 .15 0 -.02" size=".02" mass=".2"/>'
        f'<body name="shin{i}" pos=".15 0 -.02" euler="{askew if i % 2 else 0} 0 0">'
        + (knee if i % 2 else f'<joint name="knee{i}" axis="0 1 0" range="-30 60" damping=".1" stiffness="1"/>')
        + f'<geom name="shin{i}" type="sphere" size=".03" mass=".1" pos="{foot}"/>'
        f'<geom type="capsule" fromto="0 0 0 {foot}" size=".012" mass="0" contype="0" conaffinity="0"/>'  # to look at
        f"</body></body>"
    )


def _turned_back(x: str, y: str, z: str, degrees: float) -> str:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    a, b = float(y), float(z)
    return f"{x} {c * a + s * b!r} {-s * a + c * b!r}"


def crane(corner: bool = True) -> mujoco.MjModel:
    """A fixed base with two mirrored arms that swing about vertical axes, and a loose cube hung by a corner."""
    arms = "".join(
        f'<body name="{side}_arm" pos=".1 {sign * 0.2} .8"><joint name="{side}" axis="0 0 1" damping=".1"'
        f' range="{-60 if sign > 0 else -80} {80 if sign > 0 else 60}"/>'
        f'<geom type="capsule" fromto="0 0 0 .2 0 0" size=".02" mass=".5"/></body>'
        for side, sign in zip(SIDES, (1, -1), strict=True)
    )
    anchor, cube = (".05 .05 .05", ".05 -.05 .3") if corner else ("0 0 .05", ".1 0 .3")
    return mujoco.MjModel.from_xml_string(
        HEAD.format(name="crane", cone="elliptic")
        + f'<worldbody>{FLOOR}<body name="base" pos=".1 0 0"><geom size=".1"/>{arms}'
        '<body name="mast" pos="0 0 .5"><joint name="mast" type="slide" axis="0 0 1" range="0 .2" damping="5"/>'
        '<geom type="box" size=".02 .02 .02" mass=".3" contype="0" conaffinity="0"/></body></body>'
        f'<body name="cube" pos="{cube}"><freejoint/><geom type="box" size=".05 .05 .05" mass=".2"/></body>'
        f'</worldbody><equality><connect body1="cube" body2="mast" anchor="{anchor}"/></equality>'
        '<actuator><motor joint="left" ctrlrange="-1 1"/><motor joint="right" ctrlrange="-1 1"/>'
        '<motor joint="mast" gear="5" ctrlrange="-1 1"/></actuator></mujoco>'
    )


def drone() -> mujoco.MjModel:
    """One body with four rotors that push at sites and twist by turns: no joints to go by, thrust has one sign."""
    rotors = "".join(
        f'<site name="rotor{i}" pos="{0.1 * x} {0.1 * y} .01"/>'
        for i, (x, y) in enumerate(((1, 1), (-1, 1), (-1, -1), (1, -1)))
    )
    motors = "".join(
        f'<motor name="thrust{i}" site="rotor{i}" gear="0 0 1 0 0 {twist}" ctrlrange="0 3"/>'
        for i, twist in enumerate((0.02, -0.02, 0.02, -0.02))
    )
    return mujoco.MjModel.from_xml_string(
        HEAD.format(name="drone", cone="elliptic")
        + f'<worldbody>{FLOOR}<body name="hull" pos="0 0 1"><freejoint/><geom type="box" size=".1 .06 .02" mass=".5"/>'
        f"{rotors}</body></worldbody><actuator>{motors}</actuator></mujoco>"
    )


def tendon_arm() -> mujoco.MjModel:
    """A planar two-joint arm pulled by a tendon on either side, servos and muscles' filters included; hangs down."""
    sides = "".join(
        f'<site name="{side}_base" pos="{sign * 0.05} 0 0"/>' for side, sign in zip(SIDES, (1, -1), strict=True)
    )
    ends = "".join(
        f'<site name="{side}_end" pos="{sign * 0.04} 0 -.1"/>' for side, sign in zip(SIDES, (1, -1), strict=True)
    )
    tendons = "".join(
        f'<spatial name="{side}" stiffness="20"><site site="{side}_base"/><site site="{side}_end"/></spatial>'
        for side in SIDES
    )
    return mujoco.MjModel.from_xml_string(
        HEAD.format(name="tendon_arm", cone="elliptic")
        + f'<worldbody><body name="base" pos="0 0 1">{sides}<geom size=".03" contype="0" conaffinity="0"/>'
        f'<body name="upper"><joint name="shoulder" axis="0 1 0" damping=".05" ref="20" springref="20"/>'
        f'<geom type="capsule" fromto="0 0 0 0 0 -.2" size=".015"/>{ends}'
        '<body name="fore" pos="0 0 -.2"><joint name="elbow" axis="0 1 0" damping=".05" range="-90 90"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 -.2" size=".015"/></body></body></body></worldbody>'
        f"<tendon>{tendons}</tendon><actuator>"
        '<general name="pull_left" tendon="left" gainprm="-20" dyntype="filter" dynprm=".1" ctrlrange="0 1"/>'
        '<general name="pull_right" tendon="right" gainprm="-20" dyntype="filter" dynprm=".1" ctrlrange="0 1"/>'
        '<intvelocity name="elbow" joint="elbow" kp="4" actrange="-1.5 1.5" ctrlrange="-1 1"/></actuator></mujoco>'
    )


def rower(cone: str = "elliptic") -> mujoco.MjModel:
    """A free trunk with a crank on each side that drives a foot through a closed loop; sensors in skew frames."""
    sides = "".join(_oar(side, sign) for side, sign in zip(SIDES, (1, -1), strict=True))
    loops = "".join(f'<connect body1="{side}_rod" body2="{side}_foot" anchor=".2 0 0"/>' for side in SIDES)
    motors = "".join(f'<motor name="{side}" joint="{side}_crank" ctrlrange="-1 1"/>' for side in SIDES)
    senses = "".join(
        f'<force name="{side}_force" site="{side}_sole"/><torque name="{side}_torque" site="{side}_sole"/>'
        f'<accelerometer name="{side}_acc" site="{side}_sole"/><touch name="{side}_touch" site="{side}_sole"/>'
        f'<jointpos name="{side}_angle" joint="{side}_crank"/><framequat name="{side}_quat" objtype="site"'
        f' objname="{side}_sole"/><framepos name="{side}_pos" objtype="site" objname="{side}_sole"/>'
        f'<frameangvel name="{side}_spin" objtype="xbody" objname="{side}_foot"/>'
        f'<actuatorfrc name="{side}_pull" actuator="{side}"/>'
        for side in SIDES
    )
    return mujoco.MjModel.from_xml_string(
        HEAD.format(name="rower", cone=cone)
        + f'<worldbody>{FLOOR}<body name="trunk" pos="0 0 .3"><freejoint/><geom type="box" size=".2 .1 .03" mass="1"/>'
        f'<site name="imu" pos=".05 0 .01" euler="10 0 0"/>{sides}</body></worldbody>'
        f"<equality>{loops}</equality>"
        f"<actuator>{motors}</actuator>"
        '<sensor><gyro name="gyro" site="imu"/><velocimeter name="speed" site="imu"/>'
        '<subtreeangmom name="momentum" body="trunk"/><subtreelinvel name="drift" body="trunk"/>'
        f'<magnetometer name="compass" site="imu"/><clock name="clock"/>{senses}</sensor></mujoco>'
    )


def _oar(side: str, sign: int) -> str:
    # The left foot is drawn in a frame that is turned by 40 degrees about x, the right one in a plain frame.
    turn, c, s = (40, math.cos(math.radians(40)), math.sin(math.radians(40))) if sign > 0 else (0, 1.0, 0.0)
    return (
        f'<body name="{side}_crank" pos="0 {sign * 0.12} 0">'
        f'<joint name="{side}_crank" axis="0 {sign} 0" damping=".05"/>'
        f'<geom type="capsule" fromto="0 0 0 0 0 -.1" size=".01" mass=".1" contype="0" conaffinity="0"/>'
        f'<body name="{side}_rod" pos="0 0 -.1"><joint name="{side}_rod" type="ball" damping=".02"/>'
        f'<geom type="capsule" fromto="0 0 0 .2 0 0" size=".01" mass=".05" contype="0" conaffinity="0"/></body></body>'
        f'<body name="{side}_foot" pos=".2 {sign * 0.12} -.1" euler="{turn} 0 0">'
        f'<joint name="{side}_slide" type="slide" axis="0 {-s} {-c}" range="-.2 .2" damping=".5" stiffness="5"/>'
        f'<joint name="{side}_push" type="slide" axis="1 0 0" range="-.2 .2" damping=".5"/>'
        f'<geom type="sphere" size=".04" mass=".2" pos="0 {-0.15 * s!r} {-0.15 * c!r}"/>'
        f'<site name="{side}_sole" pos="0 {-0.15 * s!r} {-0.15 * c!r}" size=".05" euler="0 {20 * sign} 0"/></body>'
    )
