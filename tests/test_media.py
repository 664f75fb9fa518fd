"""Pictures of robots nobody here modelled, and files that cannot be written."""

import dataclasses
import errno
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from robots import crawler, write

import euda
from euda.body import rendering
from euda.errors import EudaError, RenderingError
from euda.media import framing, video, view
from euda.media.group_picture import group_picture
from euda.media.picture import picture, save_png
from euda.runs import run_folder
from euda.symmetry.images import Images
from euda.terminal import cli

POLICY = Path(__file__).parents[1] / "results" / "policies" / "reacher_hard"
LIGHT = '<light pos="0 0 3"/>'
HULL = f"""
<mujoco><worldbody>{LIGHT}<geom type="plane" size="0 0 1"/>
  <body name="hull" pos="0 0 .2"><freejoint/><geom type="box" size=".2 .1 .05"/><site name="jet" pos="-.2 0 0"/></body>
  </worldbody><actuator><motor site="jet" gear="1 0 0 0 0 0"/></actuator></mujoco>"""
HAND = f"""
<mujoco><worldbody>{LIGHT}<geom type="plane" size="0 0 1"/><body name="table" pos="-.6 0 .05"><geom size=".05"/></body>
  <body name="forearm" pos=".1 0 .1"><geom type="box" size=".05 .03 .1"/>
    <body name="palm" pos="0 0 .12"><joint name="wrist" axis="0 1 0"/><geom size=".04"/></body></body>
  </worldbody><actuator><motor joint="wrist"/></actuator></mujoco>"""


def coloured(frame):
    """Where a copy or an arrow is: floors and robots of these models are grey."""
    return np.ptp(frame.astype(int), axis=-1) > 30


def draw(folder, xml, copies=6, width=160, height=90, **aim):
    return picture(euda.ModelEnv(str(write(folder, xml)), **aim), copies, width, height)


def test_a_robot_of_one_body_is_seen(tmp_path):
    """It had no size, because the size was the distance between its bodies, and the camera stood inside it."""
    frame = draw(tmp_path, HULL, direction=(1, 0, 0))
    assert 0.05 < coloured(frame).mean() < 0.6


@pytest.mark.parametrize(("width", "height"), [(160, 90), (90, 160)])
def test_arrows_and_copies_are_whole(tmp_path, width, height):
    """The arrow of the front copy was cut off by the lower edge of the frame."""
    for xml in (HULL, crawler(world=LIGHT)):
        seen = coloured(draw(tmp_path, xml, width=width, height=height, direction=(1, 0, 0)))
        assert seen.mean() > 0.01
        border = np.concatenate([seen[0], seen[-1], seen[:, 0], seen[:, -1]])
        assert not border.any()


def test_a_fitted_camera_touches_its_frame_on_opposite_sides(tmp_path):
    """As near as it can be: the farthest points are at the margin, and so are those across from them."""
    points = np.random.default_rng(0).uniform(-1, 1, (40, 3)) * [3, 1, 0.5] + [5, -2, 1]
    view = framing.fit(points, 125.0, -40.0, 45.0, 16 / 9)
    forward, right, up = framing.axes(view.azimuth, view.elevation)
    seen = points - (view.lookat - view.distance * forward)
    slope = np.tan(np.radians(45) / 2)
    across = np.stack([seen @ right / (16 / 9), seen @ up], axis=1) / (seen @ forward)[:, None] / slope
    assert np.abs(across).max() == pytest.approx(0.92, abs=1e-3)
    axis = int(np.abs(across).max(axis=0).argmax())
    assert across[:, axis].max() == pytest.approx(-across[:, axis].min(), abs=0.02)


def test_copies_of_a_hand_have_its_forearm_and_the_scenery_is_there_once(tmp_path, monkeypatch):
    """Geoms that nothing moves were drawn for the original alone."""
    env = euda.ModelEnv(str(write(tmp_path, HAND)))
    painted = []

    def paint(share):
        return lambda geoms: painted.extend(env.model.body(env.model.geom_bodyid[geom.objid]).name for geom in geoms)

    monkeypatch.setattr("euda.media.picture._paint", paint)
    picture(env, copies=3, width=16, height=16)
    assert sorted(painted) == ["forearm", "forearm", "palm", "palm"]


def test_a_robot_without_geoms_cannot_be_drawn(tmp_path):
    xml = HULL.replace('<geom type="box" size=".2 .1 .05"/>', '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>')
    with pytest.raises(EudaError, match="nothing to draw: 'hull'"):
        draw(tmp_path, xml)


def test_too_large_frames_are_one_sentence(tmp_path, capsys):
    out = tmp_path / "new" / "a.mp4"
    assert cli.main(["video", str(POLICY), "--out", str(out), "--width", "100000"]) == 2
    assert capsys.readouterr().err.strip() == (
        f"euda: a frame has 1 to {rendering.LARGEST} pixels to a side, not 100000 x 480 pixels"
    )
    assert not out.parent.exists()
    arguments = ["picture", "reacher_hard", "--out", str(tmp_path / "a.png"), "--height", "100000"]
    assert cli.main(arguments) == 2
    assert "1280 x 100000" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_the_driver_refuses_is_one_sentence(monkeypatch):
    def refuse(*arguments):
        raise rendering.mujoco.FatalError("Offscreen framebuffer is not complete")

    monkeypatch.setattr(rendering.mujoco, "MjrContext", refuse)
    with pytest.raises(RenderingError, match="64 x 48 pixels cannot be drawn here"):
        rendering.Renderer(euda.make("reacher_hard").model, 64, 48)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path, monkeypatch, number):
    """Said before anything is drawn; the disk's refusal when nothing is there to be removed was a traceback."""

    def refuse(path, *arguments, **options):
        raise OSError(number, os.strerror(number), path)

    (tmp_path / "there").mkdir()
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(EudaError, match=r"cannot write .*a\.png.*choose another folder") as caught:
        save_png(tmp_path / "there" / "a.png", lambda: pytest.fail("drawn"))
    assert "\n" not in str(caught.value)
    monkeypatch.setattr(video, "_encode", lambda *arguments: pytest.fail("drawn"))
    with pytest.raises(EudaError, match=r"cannot write .*a\.mp4.*choose another folder"):
        video.film(run_folder.Run(POLICY, None), tmp_path / "there" / "a.mp4")


def test_what_a_recorded_view_says_is_escaped():
    page = view.captioned("<title>old</title><body></body>", "<img src=x>", [("#555", "as it is"), ("red", "</div>&")])
    assert "<img" not in page
    assert page.startswith("<title>&lt;img src=x&gt;</title>")
    assert page.count("&#9632;") == 2
    assert "color:red" in page
    assert "&lt;/div&gt;&amp;" in page
    assert page.rstrip().endswith("</body>")


# -- groups ------------------------------------------------------------------------------------------------


def mirrored_share(frame, hue):
    """How well the pixels of a hue in the right half are the left half's, seen in a mirror."""
    hues, saturation, _ = (np.asarray(band, float) for band in Image.fromarray(frame).convert("HSV").split())
    mask = (np.abs((hues / 255 - hue + 0.5) % 1 - 0.5) < 0.06) & (saturation > 140)
    left, right = mask[:, : mask.shape[1] // 2], np.fliplr(mask)[:, : mask.shape[1] // 2]
    return (left & right).sum() / max(1, (left | right).sum())


def test_an_image_is_what_a_mirror_shows_with_every_limb_in_its_colour(monkeypatch):
    """Legs of the walker are red and cyan; with legs that do not change places the colours are wrong."""
    right = group_picture(euda.make("walker3d_run"), 640, 360)
    assert min(mirrored_share(right, hue) for hue in (0.0, 0.5)) > 0.6
    monkeypatch.setattr("euda.media.group_picture.symmetries", with_fixed_bodies)
    wrong = group_picture(euda.make("walker3d_run"), 640, 360)
    assert max(mirrored_share(wrong, hue) for hue in (0.0, 0.5)) < 0.3


def with_fixed_bodies(model):
    """The group of a model with a mistake: no body changes places."""
    group = euda.symmetries(model)
    stay = Images.identity(model.nbody, 3).image
    wrong = [dataclasses.replace(one, bodies=dataclasses.replace(one.bodies, image=stay)) for one in group.elements]
    return dataclasses.replace(group, elements=tuple(wrong))


def test_the_command_draws_groups_and_says_where_there_is_none(tmp_path, capsys):
    out = tmp_path / "group.png"
    assert cli.main(["picture", "reacher_hard", "--group", "--out", str(out), "--width", "64", "--height", "48"]) == 0
    with Image.open(out) as drawn:
        assert drawn.size == (64, 48)
    skew = crawler().replace('pos="0 .14 0"', 'pos=".1 .14 0"')
    path = write(tmp_path, skew)
    assert cli.main(["picture", str(path), "--group", "--out", str(tmp_path / "none.png")]) == 2
    assert "nothing to draw: the robot has no symmetry beside the yaws; the nearest is" in capsys.readouterr().err
    assert not (tmp_path / "none.png").exists()
