"""Small robots of our own for tests."""

from pathlib import Path

HEAD = '<mujoco><option timestep="0.005" cone="{cone}" {option}/><worldbody>{world}'
FLOOR = '<geom name="floor" type="plane" size="0 0 1" {tilt}/>'
CRAWLER = """
<body name="trunk" pos="0 0 .35"><freejoint name="root"/><geom type="box" size=".2 .12 .06"/>
  <body name="left" pos="0 .14 0"><joint name="left_hip" axis="1 0 0" range="-60 60"/>
    <joint name="left_knee" axis="0 1 0" range="-60 60"/>
    <geom name="left_leg" type="capsule" fromto="0 0 0 0 .1 -.25" size=".03"/></body>
  <body name="right" pos="0 -.14 0"><joint name="right_hip" axis="1 0 0" range="-60 60"/>
    <geom name="right_leg" type="capsule" fromto="0 0 0 0 -.1 -.25" size=".03"/>
    <body name="foot" pos="0 -.1 -.25"><geom name="foot" type="sphere" size=".05"/>
      <site name="sole"/></body></body>
</body>"""
MOTORS = (
    "<actuator>{}</actuator>".format(
        "".join(f'<motor joint="{j}" gear="8" ctrlrange="-1 1"/>' for j in ("left_hip", "left_knee", "right_hip"))
    )
    + '<sensor><gyro name="gyro" site="sole"/><framelinvel name="linvel" objtype="body" objname="trunk"/>'
    '<touch name="touch" site="sole"/><magnetometer name="compass" site="sole"/></sensor></mujoco>'
)
CART = """
<mujoco><worldbody><geom type="plane" size="0 0 1"/>
  <body name="cart" pos="0 0 .15"><freejoint/><geom type="box" size=".3 .2 .05" mass="3"/>
    <body name="left_wheel" pos="0 .25 -.05"><joint name="left" axis="0 1 0"/>
      <geom type="cylinder" size=".1 .03" euler="90 0 0" mass=".5"/></body>
    <body name="right_wheel" pos="0 -.25 -.05"><joint name="right" axis="0 1 0"/>
      <geom type="cylinder" size=".1 .03" euler="90 0 0" mass=".5"/></body>
    <body name="mast" pos="0 0 .1"><joint name="ball" type="ball"/><geom type="sphere" size=".05" mass=".2"/></body>
  </body></worldbody>
  <actuator><motor joint="left"/><motor joint="right"/></actuator></mujoco>"""
ARM = """
<mujoco><worldbody><site name="goal" pos=".3 .2 .4"/>
  <body name="pedestal" pos=".1 0 .1"><geom size=".05"/>
    <body name="upper" pos="0 0 .1"><joint name="turn" axis="0 0 1"/><joint name="lift" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .2 0 .1" size=".02"/>
      <body name="fore" pos=".2 0 .1"><joint name="elbow" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/><site name="tip" pos=".2 0 0"/></body></body></body>
  <body name="ball" pos=".5 .3 .5"><freejoint/><geom size=".04" type="ellipsoid" pos="0 0 0" contype="0"/></body>
  </worldbody>
  <actuator><motor joint="turn"/><motor joint="lift"/><motor joint="elbow"/></actuator></mujoco>""".replace(
    'size=".04" type="ellipsoid"', 'size=".04 .05 .06" type="ellipsoid"'
)


def crawler(cone: str = "elliptic", option: str = "", tilt: str = "", world: str = "") -> str:
    """A two-legged crawler on a floor, with whatever is to be tested added."""
    return (
        HEAD.format(cone=cone, option=option, world=FLOOR.format(tilt=tilt) + world) + CRAWLER + "</worldbody>" + MOTORS
    )


def write(folder: Path, xml: str, name: str = "robot.xml") -> Path:
    """Save a model."""
    path = folder / name
    path.write_text(xml)
    return path
