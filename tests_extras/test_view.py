"""The view in headless Chromium: a page that plays offline, a live scene that obeys, and what is refused."""

import io
import json
import os
import shutil
import socket
import threading
import time
from pathlib import Path

import mujoco
import numpy as np
import pytest
import untrained
from PIL import Image
from playwright import sync_api

import euda
from euda import EudaError
from euda.media import view
from euda.media.shapes import shapes
from euda.media.twins import Twins, worlds_of
from euda.reports import scenes
from euda.runs import evaluation
from euda.terminal.cli import main

SHOTS = os.environ.get("EUDA_SCREENSHOTS")
"""A folder for screenshots to look at."""
PATIENCE = 240_000  # milliseconds: without a graphics card, drawing takes long
LARGEST = 1.3e6
"""Bytes of a page: 0.82 MB are the player, the rest is the scene."""
HARMLESS = ("Software WebGL", "THREE.Clock", "GPU stall", "GL Driver Message")  # of a machine without graphics


@pytest.fixture(scope="module")
def browser():
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    assert path, "chromium is missing: apt-get install chromium"
    with sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist",
                 "--disable-background-networking", "--no-first-run"]  # fmt: skip
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()


def opened(browser, url, selector="canvas", size=(360, 280)):
    """A small page, and what its console says that is wrong, and what it asks of the network."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.set_default_timeout(PATIENCE)
    wrong, asked = [], []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append("a dialog"))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(url)
    page.wait_for_selector(selector, state="attached")
    return page, wrong, asked


def picture(page, name):
    """A page, or a part of it, as pixels [height, width, 3]."""
    content = page.screenshot(timeout=PATIENCE)
    if SHOTS:
        (Path(SHOTS) / f"{name}.png").write_bytes(content)
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"), np.int32)


def drawn(image):
    """How many pixels have a colour: the robot and its twins, and nothing else of the page's middle."""
    middle = image[60:230, 40:-40]
    return int((np.ptp(middle, axis=-1) > 25).sum())


def unsurprising(wrong):
    return [text for text in wrong if not any(known in text for known in HARMLESS)]


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    run = untrained.run(tmp_path_factory.mktemp("run"), "hopper3d_hop", "limb", mlp={"hidden_size": 16})
    make = lambda: evaluation.make_environment(run.config)  # noqa: E731
    first = make()
    return Twins(make, evaluation.load_policy(run, first)[0], worlds_of(first, 1))


def test_a_page_plays_offline_from_a_file(browser, twins, tmp_path):
    page = view.record(twins, 1.0, "<img src=x onerror=alert(1)>")
    file = tmp_path / "policy.html"
    file.write_text(page, "utf-8")
    assert len(page.encode()) < LARGEST
    browser_page, wrong, asked = opened(browser, file.as_uri())
    until(browser_page, "document.title.includes('<img')")
    lines = browser_page.locator("#caption").inner_text()
    assert "the robot, return" in lines
    assert "turned by 180°" in lines
    assert "mirror" in lines
    assert browser_page.locator("#caption img").count() == 0
    deadline = time.monotonic() + PATIENCE / 1000
    seen = []
    while len(seen) < 2 or np.abs(seen[0] - seen[-1])[60:230].max() < 60:  # it moves
        assert time.monotonic() < deadline
        image = picture(browser_page, f"page-{len(seen)}")
        if drawn(image) > 50:
            seen.append(image)
    browser_page.close()
    assert unsurprising(wrong) == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_a_report_shows_policies_that_move(browser, tmp_path, monkeypatch, capsys):
    """In frames of their own, which the report's strict policy allows."""
    monkeypatch.setattr(scenes, "SECONDS", 1.0)
    run = untrained.run(tmp_path / "run", "hopper3d_hop", "limb", mlp={"hidden_size": 16})
    line = {"event": "eval", "step": 0, "seconds": 1.0, "return_mean": 1.0, "returns": [1.0]}
    run.metrics_path.write_text(json.dumps(line) + "\n")
    bare = untrained.run(tmp_path / "bare", "hopper3d_hop", "ddpg", mlp={"hidden_size": 16})
    bare.metrics_path.write_text(json.dumps(line) + "\n")
    bare.policy.unlink()
    flags = ["--out", str(tmp_path / "out"), "--scenes", "--no-certificates"]
    assert main(["report", str(run.folder), str(bare.folder), *flags]) == 0, capsys.readouterr().err
    assert (tmp_path / "out" / "scenes" / "0.html").stat().st_size < LARGEST
    page, wrong, asked = opened(browser, (tmp_path / "out" / "report.html").as_uri(), "#scenes iframe", (700, 560))
    assert page.locator("#scenes iframe").count() == 1
    assert "ddpg, seed 0 has no scene" in page.locator("#missing").inner_text()
    page.locator("#scenes").scroll_into_view_if_needed()
    frame = page.frame_locator("#scenes iframe")
    frame.locator("canvas").first.wait_for()
    assert "the robot, return" in frame.locator("#caption").inner_text()
    assert "turned by 120°" in page.locator("#scenes figcaption").inner_text()
    deadline = time.monotonic() + PATIENCE / 1000
    while drawn(picture(page.locator("#scenes iframe"), "report-scene")) < 50:
        assert time.monotonic() < deadline, "nothing is drawn"
    page.close()
    assert unsurprising(wrong) == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def until(page, expression):
    end = time.monotonic() + PATIENCE / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(50)


def test_a_live_scene_obeys(browser, twins):
    server = view.serve(0)
    is_over = threading.Event()
    live = view.Live(server, twins)
    thread = threading.Thread(target=live.run, args=(is_over.is_set,))
    thread.start()
    try:
        page, wrong, asked = opened(browser, f"http://{view.HOST}:{server.get_port()}/")
        page.get_by_role("button", name="push", exact=True).click()
        page.get_by_text("play", exact=True).click()
        deadline = time.monotonic() + PATIENCE / 1000
        while live.play.value:
            assert time.monotonic() < deadline, "it does not pause"
            page.wait_for_timeout(100)
        page.get_by_role("button", name="another start").click()
        while live._seed == 0:
            assert time.monotonic() < deadline, "there is no other start"
            page.wait_for_timeout(100)
        assert "return" in live.text.content
        picture(page, "live")
        page.close()
    finally:
        is_over.set()
        thread.join()
        view.stop(server)
    assert unsurprising(wrong) == []
    assert {url.split("/")[2] for url in asked if url.startswith(("http", "ws"))} == {f"{view.HOST}:{live.port}"}


def test_a_port_in_use_is_refused(capsys):
    with socket.socket() as taken:
        taken.bind((view.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["view", "reacher_hard", "--port", str(port), "--no-browser"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"euda: port {port} cannot be used")
    assert error.count("\n") == 1
    with pytest.raises(EudaError, match="a port is a whole number from 0"):
        view.serve(70000)


def test_no_browser_is_said(monkeypatch, capsys):
    monkeypatch.setattr(view.webbrowser, "open", lambda url: False)
    assert main(["view", "reacher_hard", "--port", "0"]) == 2
    assert capsys.readouterr().err.startswith("euda: there is no browser here to open a view in: --no-browser")


def test_the_command_writes_a_page_and_says_how_large(tmp_path, capsys):
    assert main(["view", "reacher_hard", "--out", str(tmp_path / "x.html"), "--seconds", "0.2"]) == 0
    out = capsys.readouterr().out
    assert "MB); returns: the robot 0.0, turned by 120° 0.0" in out
    assert (tmp_path / "x.html").stat().st_size < LARGEST


@pytest.mark.parametrize("task", ["quadruped_run", "humanoid_run", "cheetah_run"])
def test_meshes_fill_the_boxes_of_their_geoms(task):
    model = euda.make(task).model
    planes = model.geom_type == int(mujoco.mjtGeom.mjGEOM_PLANE)
    found = shapes(model, range(model.ngeom))
    assert sorted(g for shape in found for g in shape.geoms) == np.flatnonzero(~planes).tolist()
    for shape in found:
        for geom, scale in zip(shape.geoms, shape.scales, strict=True):
            half = np.abs(shape.vertices * scale).max(axis=0)
            np.testing.assert_allclose(half, model.geom_aabb[geom, 3:], rtol=0.06, atol=1e-4)
