"""The report's page in headless Chromium: it loads, shows its curves, obeys its controls, and fits a phone."""

import json
import os
import shutil
import threading
from pathlib import Path

import pytest
from playwright import sync_api
from study_files import COMPARED, invent, write

from euda.study import plan, report, serve
from euda.study.record import Study

SHOTS = os.environ.get("EUDA_SCREENSHOTS")
"""A folder for screenshots to look at."""
VISIBLE = "plot => plot.data.filter(trace => trace.visible !== false).length"
FITTING = """() => [...document.querySelectorAll("#curves .js-plotly-plot")].every(plot => {
  const width = plot.querySelector(".main-svg").getBoundingClientRect().width;
  const box = plot.closest(".card").getBoundingClientRect().width;
  return 0.8 * box < width && width <= box;
})"""
PATIENCE = 120_000  # milliseconds, for machines that do other things as well
TEXT = COMPARED.replace("[0, 1, 2]", "[0, 1, 2, 3, 4]").replace("[methods.ddpg]", "[methods.ddpg]\nseeds = [0, 1]")
FEW = 2 + 1  # of ddpg: a line for each seed, and the mean
TASKS, TRACES = 2, FEW + 2 * 3 + 1  # mean and interval of three curves, the last one has a single seed


@pytest.fixture(scope="module")
def browser():
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    assert path, "chromium is missing: apt-get install chromium"
    with sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    study = Study(plan.load(write(folder, TEXT, "compared")), folder / "runs")
    invent(study, without=(25,), short=(0,))
    return study


@pytest.fixture(scope="module")
def file(study):
    subject = report.find(study.runs.parent / "compared.toml", study.runs)
    made = report.gather(subject, lambda sentence: None, with_certificates=False)
    return report.write(made, study.runs.parent / "out")[0]


@pytest.fixture
def open_page(browser, file):
    """Opens the page offline at a size, and in the end finds nothing wrong in its console."""
    pages, wrong, requests = [], [], []

    def open_(width=1280, height=900):
        page = browser.new_page(viewport={"width": width, "height": height})
        pages.append(page)
        page.set_default_timeout(PATIENCE)
        page.context.set_offline(True)
        page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append("a dialog"))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_function(f"document.querySelectorAll('#curves .scatterlayer .trace').length == {TASKS * TRACES}")
        return page

    yield open_
    for page in pages:
        page.close()
    assert wrong == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []


def shoot(page, name):
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)


def plots(page, script):
    return page.eval_on_selector_all("#curves .js-plotly-plot", f"plots => plots.map({script})")


def test_it_loads_offline_with_all_its_curves(open_page):
    page = open_page()
    assert plots(page, VISIBLE) == [TRACES] * TASKS
    page.wait_for_function(FITTING)  # a plot drawn before the cards beside it is resized a moment later
    assert page.locator("h1").inner_text() == "Compared <b>&</b> drawn"
    shoot(page, "desktop")


def test_toggling_a_method_changes_every_plot(open_page):
    page = open_page()
    chip = page.locator(".chip", has_text="ddpg")
    chip.click()
    page.wait_for_function(
        f"document.querySelectorAll('#curves .scatterlayer .trace').length == {TASKS * (TRACES - FEW)}"
    )
    assert plots(page, VISIBLE) == [TRACES - FEW] * TASKS
    chip.click()
    assert plots(page, VISIBLE) == [TRACES] * TASKS
    chip.dblclick()  # it alone
    assert plots(page, VISIBLE) == [FEW] * TASKS


def test_smoothing_scales_and_hours(open_page):
    page = open_page()
    first = "plot => plot.data.find(trace => trace.customdata)"
    rough = plots(page, f"plot => Array.from(({first})(plot).y)")[0]
    page.locator("select[name=smooth]").select_option("5")
    smooth = plots(page, f"plot => Array.from(({first})(plot).y)")[0]
    assert smooth[4] == pytest.approx(sum(rough[2:7]) / 5, rel=1e-4)
    page.locator("select[name=scale]").select_option("log x")
    assert plots(page, "plot => plot.layout.xaxis.type") == ["log"] * TASKS
    page.locator("select[name=scale]").select_option("log y")
    assert plots(page, "plot => [plot.layout.xaxis.type, plot.layout.yaxis.type]") == [["linear", "log"]] * TASKS
    page.locator("select[name=axis]").select_option("hours")
    assert plots(page, "plot => plot.layout.xaxis.title.text") == ["hours"] * TASKS
    assert plots(page, f"plot => ({first})(plot).x[10]")[0] == pytest.approx(200_000 / 150 / 3600, rel=1e-3)


def test_hovering_says_how_many_seeds(open_page):
    page = open_page()
    page.locator("#curves .nsewdrag").first.hover(position={"x": 60, "y": 80})
    page.wait_for_selector("#curves .hoverlayer .legendtext, #curves .hoverlayer text")
    assert "seed" in " ".join(page.locator("#curves .hoverlayer text").all_text_contents())


def test_it_is_readable_at_phone_width(open_page):
    page = open_page(390, 844)
    page.wait_for_function(FITTING)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") >= 15
    right = plots(page, "plot => plot.querySelector('.main-svg').getBoundingClientRect().right")
    assert max(right) <= 390
    heights = page.eval_on_selector_all(".chip", "chips => chips.map(chip => chip.getBoundingClientRect().height)")
    assert min(heights) >= 24
    shoot(page, "phone")


def test_served_it_comes_back_with_what_is_new_and_keeps_the_choices(browser, study, tmp_path):
    follower = serve.Follower(
        report.find(study.runs.parent / "compared.toml", study.runs), lambda sentence: None, False
    )
    with serve.make_server(follower) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        page.locator(".chip", has_text="ddpg").click()
        with (study.folder_of(study.plan.runs[0]) / "metrics.jsonl").open("a") as file:
            event = {"event": "eval", "step": 220_000, "seconds": 1500, "return_mean": 1, "returns": [1]}
            file.write(json.dumps(event) + "\n")
        with page.expect_navigation(timeout=PATIENCE):
            pass
        page.wait_for_function("document.querySelectorAll('#curves .scatterlayer .trace').length > 0")
        assert page.locator(".chip", has_text="ddpg").get_attribute("aria-pressed") == "false"
        assert plots(page, VISIBLE) == [TRACES - FEW] * TASKS
        page.close()
        server.shutdown()
        thread.join()
