"""The report's page in headless Chromium: it loads, draws, obeys its controls, fits a phone, and runs nothing else."""

import json
import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from playwright import sync_api
from study_files import COMPARED, invent, write

from euda.reports import report, server
from euda.reports.page import plotly_js
from euda.studies import plan
from euda.studies.study_folder import Study

SHOTS = os.environ.get("EUDA_SCREENSHOTS")
"""A folder for screenshots to look at."""
VISIBLE = "plot => plot.data.filter(trace => trace.visible !== false).length"
FITTING = """(() => [...document.querySelectorAll("#curves .js-plotly-plot")].every(plot => {
  const width = plot.querySelector(".main-svg").getBoundingClientRect().width;
  const box = plot.closest(".card").getBoundingClientRect().width;
  return 0.8 * box < width && width <= box;
}))()"""
PATIENCE = 120_000  # milliseconds, for machines that do other things as well
TEXT = COMPARED.replace("[0, 1, 2]", str(list(range(7)))).replace("[methods.ddpg]", "[methods.ddpg]\nseeds = [0, 1]")
FEW = 2 + 1  # of ddpg: a line for each seed, and the median
TASKS, TRACES = 2, FEW + 2 * 3 + 1  # median and interval of three curves, the last one has a single seed
COUNT = "document.querySelectorAll('#curves .scatterlayer .trace').length"


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

    def open_(width=1280, height=900, file=file, scheme="light"):
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        pages.append(page)
        page.set_default_timeout(PATIENCE)
        page.context.set_offline(True)
        page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append("a dialog"))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        until(page, f"{COUNT} == {TASKS * TRACES}")
        return page

    yield open_
    for page in pages:
        page.close()
    assert wrong == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []


def until(page, expression):
    """Wait until an expression is true; Playwright's own waiting evaluates texts, which the page's policy forbids."""
    end = time.monotonic() + PATIENCE / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(50)


def shoot(page, name):
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)


def plots(page, script):
    return page.eval_on_selector_all("#curves .js-plotly-plot", f"plots => plots.map({script})")


def test_it_loads_offline_with_all_its_curves(open_page):
    page = open_page()
    assert plots(page, VISIBLE) == [TRACES] * TASKS
    until(page, FITTING)  # a plot drawn before the cards beside it is resized a moment later
    assert page.locator("h1").inner_text() == "Compared <b>&</b> drawn"
    shoot(page, "desktop")


def test_toggling_a_method_changes_every_plot(open_page):
    page = open_page()
    chip = page.locator(".chip", has_text="ddpg")
    chip.click()
    until(page, f"{COUNT} == {TASKS * (TRACES - FEW)}")
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
    until(page, FITTING)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") >= 15
    right = plots(page, "plot => plot.querySelector('.main-svg').getBoundingClientRect().right")
    assert max(right) <= 390
    heights = page.eval_on_selector_all(".chip", "chips => chips.map(chip => chip.getBoundingClientRect().height)")
    assert min(heights) >= 24
    shoot(page, "phone")


def test_in_the_dark_it_is_dark_and_its_plots_too(open_page):
    page = open_page(scheme="dark")
    light = "c => c.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3"
    assert page.evaluate(f"({light})(getComputedStyle(document.body).backgroundColor)") < 60
    ticks = f"plot => ({light})(getComputedStyle(plot.querySelector('.xtick text')).fill)"
    assert min(plots(page, ticks)) > 130
    shoot(page, "dark")
    page.emulate_media(color_scheme="light")
    until(page, f"({light})(getComputedStyle(document.querySelector('.xtick text')).fill) < 130")


def test_returns_below_zero_are_seen(browser, open_page, tmp_path):
    study = Study(plan.load(write(tmp_path, TEXT, "compared")), tmp_path / "runs")
    invent(study, without=(25,), short=(0,), offset=-2000)
    made = report.gather(report.find(tmp_path / "compared.toml", study.runs), lambda sentence: None, False)
    page = open_page(file=report.write(made, tmp_path / "out")[0])
    inside = """plot => plot.data.every(trace => trace.y.every(
      y => y === null || (plot.layout.yaxis.range[0] <= y && y <= plot.layout.yaxis.range[1])))"""
    assert plots(page, inside) == [True] * TASKS
    assert plots(page, "plot => plot.layout.yaxis.range[0] < plot.layout.yaxis.range[1]") == [True] * TASKS
    page.locator("select[name=smooth]").select_option("5")
    assert plots(page, inside) == [True] * TASKS
    shoot(page, "negative")


def test_pages_that_share_the_library_work_too(open_page, study, tmp_path):
    made = report.gather(report.find(study.runs.parent / "compared.toml", study.runs), lambda sentence: None, False)
    (tmp_path / "plotly.min.js").write_text(plotly_js(), "utf-8")
    file = report.write(made, tmp_path / "one", library=tmp_path / "plotly.min.js")[0]
    assert plots(open_page(file=file), VISIBLE) == [TRACES] * TASKS


def test_what_gets_into_the_page_does_not_run(browser, file):
    """Even HTML that escaped our escaping: the policy allows the page's own scripts by their hashes, and no other."""
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(file.as_uri())
    until(page, f"{COUNT} == {TASKS * TRACES}")
    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "window.wrong = 1";
      document.body.append(script);
      document.body.insertAdjacentHTML("beforeend", '<img src="data:," onerror="window.wrong = 2">');
    }""")
    page.wait_for_timeout(500)
    assert page.evaluate("window.wrong") is None
    assert sum("Content Security Policy" in text for text in refused) >= 2
    page.close()


def test_served_it_comes_back_with_what_is_new_and_keeps_the_choices(browser, study, tmp_path):
    follower = server.Follower(
        report.find(study.runs.parent / "compared.toml", study.runs), lambda sentence: None, False
    )
    with server.make_server(follower) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(f"http://127.0.0.1:{listening.server_port}/")
        page.locator(".chip", has_text="ddpg").click()
        with (study.folder_of(study.plan.runs[0]) / "metrics.jsonl").open("a") as file:
            event = {"event": "eval", "step": 220_000, "seconds": 1500, "return_mean": 1, "returns": [1]}
            file.write(json.dumps(event) + "\n")
        with page.expect_navigation(timeout=PATIENCE):
            pass
        until(page, f"{COUNT} > 0")
        assert page.locator(".chip", has_text="ddpg").get_attribute("aria-pressed") == "false"
        assert plots(page, VISIBLE) == [TRACES - FEW] * TASKS
        page.close()
        listening.shutdown()
        thread.join()
