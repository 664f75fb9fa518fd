"""Tables, figures and the page, from runs with made-up returns."""

import base64
import dataclasses
import gzip
import hashlib
import html.parser
import http.client
import importlib.resources
import json
import re
import shutil
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from study_files import COMPARED, invent, write

import euda
from euda.errors import EudaError
from euda.reports import (
    certificates,
    labels,
    matplotlib_figures,
    page,
    page_tables,
    plotly_figures,
    report,
    results_table,
    scenes,
    server,
    style,
    summary,
)
from euda.runs import premise
from euda.runs.config import RunConfig
from euda.runs.robot_config import RobotConfig
from euda.runs.settings import EvaluationConfig
from euda.studies import plan
from euda.studies.study_folder import Study
from euda.terminal import cli

TRIPOD = importlib.resources.files("euda").joinpath("examples", "tripod.xml")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """26 runs: one is missing, one is shorter than the others."""
    folder = tmp_path_factory.mktemp("study")
    study = Study(plan.load(write(folder, COMPARED, "compared")), folder / "runs")
    invent(study, without=(5,), short=(0,))
    return study


@pytest.fixture(scope="module")
def found(study):
    return results_table.of_study(study)


@pytest.fixture(scope="module")
def gathered(study):
    subject = report.find(study.runs.parent / "compared.toml", study.runs)
    return report.gather(subject, lambda sentence: None, with_certificates=False)


def test_the_table_has_a_row_per_run_and_evaluation(found, study):
    assert found.frame.height == 24 * 21 + 11
    assert found.frame.schema == pl.Schema(results_table.SCHEMA)
    assert found.frame["run"].n_unique() == len(study.plan.runs) - 1
    assert found.damaged == ()
    assert found.frame["step"].max() == 400_000


def test_curves_have_nan_where_a_run_is_shorter(found):
    curve = found.curve("reacher_hard", "ddpg")
    assert curve.values.shape == (3, 21)
    assert np.isnan(curve.values).sum() == 10
    assert (curve.planned, curve.seeds) == (3, (0, 1, 2))


def test_export_by_the_files_ending(study, found, tmp_path, capsys):
    arguments = ["study", "export", str(study.runs.parent / "compared.toml"), "--runs", str(study.runs), "--out"]
    for name, read in (("results.parquet", pl.read_parquet), ("deep/results.csv", pl.read_csv)):
        assert cli.main([*arguments, str(tmp_path / name)]) == 0
        assert read(tmp_path / name)["return_mean"].to_list() == found.frame["return_mean"].to_list()
    assert cli.main([*arguments, str(tmp_path / "results.xlsx")]) == 2
    assert ".parquet or .csv" in capsys.readouterr().err


def test_exports_have_the_losses_since_the_evaluation_before(tmp_path):
    study = Study(plan.load(write(tmp_path, COMPARED, "compared")), tmp_path / "runs")
    invent(study, every=200_000)
    path = study.folder_of(study.plan.runs[0]) / "metrics.jsonl"
    losses = [(100_000, 4.0), (200_000, 2.0), (300_000, 1.0), (300_500, float("nan")), (500_000, 9.0)]
    trained = [{"event": "train", "step": s, "seconds": 1.0, "episode": 1, "return": 0.0, "critic_loss": loss}
               for s, loss in losses]  # fmt: skip
    path.write_text(path.read_text() + "".join(json.dumps(event) + "\n" for event in trained))
    file = tmp_path / "results.parquet"
    arguments = [str(tmp_path / "compared.toml"), "--runs", str(study.runs), "--out", str(file)]
    assert cli.main(["study", "export", *arguments]) == 0
    rows = pl.read_parquet(file)
    assert rows.filter(pl.col("run") == rows["run"][0])["critic_loss"].to_list() == [None, 3.0, 1.0]
    assert rows.columns == [*results_table.SCHEMA, "critic_loss"]


def test_damaged_lines_are_named_skipped_and_counted(study, tmp_path, capsys):
    runs = tmp_path / "runs"
    copy = Study(study.plan, runs)
    invent(copy)
    path = copy.folder_of(study.plan.runs[0]) / "metrics.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[2] = b'{"event": "eval", "step": 4'
    lines[4] = b'{"event": "eval", "step": 80000, "seconds": 1, "return_mean": NaN, "returns": [1]}'
    lines[5] = b"\xff\xfe\x00"
    path.write_bytes(b"\n".join(lines))
    arguments = [str(study.runs.parent / "compared.toml"), "--runs", str(runs)]
    assert cli.main(["study", "export", *arguments, "--out", str(tmp_path / "a.csv")]) == 0
    error = capsys.readouterr().err
    assert "3 lines are not events and were skipped (line 3, 5, 6)" in error
    assert "reacher_hard/ddpg-seed0" in error
    assert pl.read_csv(tmp_path / "a.csv").height == 26 * 21 - 3
    assert path.read_bytes() == b"\n".join(lines)


def test_summary_says_what_each_number_rests_on(found):
    rows = {(row.task, row.curve): row for row in summary.summarise(found, reach=100).rows}
    short = rows["reacher_hard", "ddpg"]
    assert (short.runs, short.planned, short.step, short.longest) == (3, 3, 200_000, 400_000)
    assert short.final is not None
    assert short.final.value == pytest.approx(115, abs=20)
    assert short.reached == 3
    missing = [row for row in rows.values() if row.runs < row.planned]
    assert len(missing) == 1
    alone = rows["cheetah_run", "rotate-auto"]
    assert alone.final is not None
    assert not alone.final.is_known
    assert alone.speed == pytest.approx(150)


def test_summary_compares_with_the_first_method_and_finds_the_best_share(found):
    numbers = summary.summarise(found)
    assert numbers.reference == "ddpg"
    assert numbers.overall[0].improvement is None
    assert numbers.overall[-2].improvement is not None
    assert numbers.overall[-2].improvement.value == 1.0
    assert [(best.task, best.best) for best in numbers.shares] == [("reacher_hard", 0.5), ("cheetah_run", 0.5)]
    json.dumps(numbers.to_json(), allow_nan=False)


def test_shares_are_compared_only_between_runs_that_are_otherwise_the_same(tmp_path):
    """Made-up returns grow from row to row, so the last, which has other settings, would be the best of all."""
    text = (
        'title = "Shares"\nbase = "paper"\ntasks = ["reacher_hard"]\nseeds = [0, 1]\nsteps = 400000\n'
        "[methods.limb]\n[methods.rotate]\nshares = [0.25, 0.5]\n"
        '[methods."rotate, quick"]\nmethod = "rotate"\nshares = [{}]\noverrides.ddpg.stddev_steps = 100000\n'
    )
    for shares, expected in (
        ("0.5", [(0.5, "rotate 50 %", [0.0, 0.25, 0.5])]),
        ("0.5, 1", [(0.5, "rotate 50 %", [0.0, 0.25, 0.5]), (1.0, "rotate, quick 100 %", [0.5, 1.0])]),
    ):
        folder = tmp_path / shares
        folder.mkdir()
        study = Study(plan.load(write(folder, text.format(shares))), folder / "runs")
        invent(study)
        numbers = summary.summarise(results_table.of_study(study))
        assert [(best.best, best.curve, sorted(best.scores)) for best in numbers.shares] == expected
    (first, second) = page_tables.shares(numbers.shares).rows
    assert (first[1].text, first[1].soft, second[1].soft) == ("50 %", "rotate 50 %", "rotate, quick 100 %")


def test_figures_are_files_of_their_kind_and_the_same_twice(found):
    heads = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for kind, head in heads.items():
        first, second = (
            matplotlib_figures.render(matplotlib_figures.learning_curves(found, "hours"), kind) for _ in range(2)
        )
        assert first.startswith(head)
        assert first == second
    drawn = matplotlib_figures.choices(found)
    assert drawn is not None
    assert len(drawn.axes) == 2


@pytest.mark.parametrize("offset", [0, -300, -2000])
def test_axes_and_goals_fit_returns_of_any_sign(tmp_path, offset):
    """Negative returns vanished below an axis that began at 0; where all were negative it was upside down."""
    study = Study(plan.load(write(tmp_path, COMPARED)), tmp_path / "runs")
    invent(study, offset=offset)
    found = results_table.of_study(study)
    returns = found.frame["return_mean"].to_numpy()
    task = study.plan.tasks[0]
    bottom, top = style.limits(found, task)
    panels = matplotlib_figures.learning_curves(found).axes
    plot = plotly_figures.curves(found, task, "steps")
    for ends in ((bottom, top), panels[0].get_ylim(), plot["layout"]["yaxis"]["range"]):
        assert ends[0] <= returns.min()
        assert ends[1] >= returns.max()
        assert ends[1] - ends[0] < 1.3 * (returns.max() - returns.min())
    assert (bottom == 0) == (offset == 0)
    rows = [row for row in summary.summarise(found).rows if row.task == task]
    best = max(row.final.value for row in rows)
    assert rows[0].goal == pytest.approx((offset + 15 + best) / 2, abs=10)  # halfway from untrained to the best
    assert {row.curve: row.reached for row in rows}["rotate 50 %"] == 3
    text = page.build(report.gather(report.find(tmp_path / "tiny.toml", study.runs), print, with_certificates=False))
    assert ('<option value="log y">' in text) == (offset == 0)  # it would hide what is negative


def test_no_number_is_minus_zero():
    assert [style.number(value, digits) for value, digits in ((-0.2, 0), (-0.04, 1), (-3.0, 0))] == ["0", "0.0", "-3"]


def test_captions_explain_what_is_drawn_and_nothing_else(tmp_path):
    def caption(seeds, short=()):
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        text = f'tasks = ["reacher_hard"]\nseeds = {list(range(seeds))}\nsteps = 100000\n[methods.limb]\n'
        study = Study(plan.load(write(folder, text)), folder / "runs")
        invent(study, short=short)
        found = results_table.of_study(study)
        figure = matplotlib_figures.learning_curves(found)
        (axes,), (legend,) = figure.axes, figure.legends
        assert bool(axes.collections) == ("shaded" in legend.get_title().get_text())
        assert any(line.get_linestyle() == ":" for line in axes.lines) == ("dotted" in legend.get_title().get_text())
        return style.caption(found, "dotted")

    assert caption(1) == ["one seed each"]
    assert caption(2) == ["line: median over seeds", "thin: the seeds"]
    assert caption(6) == ["line: median over seeds", "shaded: its 95 % interval, whatever the distribution of returns"]
    assert caption(3, short=(0,)) == ["line: median over seeds", "thin: the seeds", "dotted"]


def test_long_labels_stay_inside_the_figure(tmp_path):
    name = "a method whose name goes on and on, and says what it does with every one of its settings, at length"
    text = 'tasks = ["reacher_hard"]\nseeds = [0]\nsteps = 100000\n[methods.limb]\n'
    text += f'[methods."{name}"]\nmethod = "rotate"\n'
    study = Study(plan.load(write(tmp_path, text)), tmp_path / "runs")
    invent(study)
    figure = matplotlib_figures.learning_curves(results_table.of_study(study))
    figure.draw_without_rendering()
    box, (legend,) = figure.bbox, figure.legends
    extent = legend.get_window_extent()
    assert box.x0 <= extent.x0
    assert extent.x1 <= box.x1


def test_claims_of_a_study_are_judged_together(tmp_path):
    """Made-up returns of a method are far above those of the one before, so five seeds decide what three cannot."""
    text = (
        'tasks = ["reacher_hard"]\nsteps = 100000\n[methods.ddpg]\n[methods.limb]\n[methods.sac]\nseeds = [0, 1, 2]\n'
    )
    study = Study(plan.load(write(tmp_path, "seeds = [0, 1, 2, 3, 4]\n" + text)), tmp_path / "runs")
    invent(study)
    limb, sac = summary.summarise(results_table.of_study(study)).claims
    assert (limb.first, limb.second, limb.seeds, limb.step) == ("limb", "ddpg", (5, 5), 100_000)
    assert limb.p == pytest.approx(2 / 252)  # of 252 ways to choose five of ten, the two farthest out
    assert limb.adjusted == pytest.approx(4 / 252)
    assert (limb.verdict, limb.seeds_to_decide) == ("confirmed", None)
    assert (sac.seeds, sac.p, sac.adjusted) == ((3, 5), pytest.approx(2 / 56), pytest.approx(2 / 56))
    assert sac.verdict == "confirmed"
    pair = results_table.of_study(study)
    two = dataclasses.replace(pair, frame=pair.frame.filter(~((pl.col("curve") == "sac") & (pl.col("seed") == 2))))
    limb, sac = summary.summarise(two).claims
    assert (sac.seeds, sac.verdict) == ((2, 5), "open")
    assert np.isnan(sac.adjusted)  # two against five can decide nothing, so it does not count:
    assert limb.adjusted == limb.p
    json.dumps(summary.summarise(two).to_json(), allow_nan=False)
    backwards = summary.summarise(results_table.of_study(study), pairs=[("ddpg", "limb"), ("nowhere", "limb")]).claims
    assert [claim.verdict for claim in backwards] == ["contradicted"]
    few = summary.summarise(results_table.of_study(study), pairs=[("sac", "limb")] * 3).claims  # 3 * 2 / 56 > 0.05
    assert {(claim.verdict, claim.seeds_to_decide) for claim in few} == {("open", 5)}


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ('[["limb", "ddpg"]]', None),
        ('[["limb"]]', "list of pairs of texts"),
        ('[["limb", "limb"]]', "compare two curves"),
        ('"limb"', "list of pairs of texts"),
        ('[["limb", "dddpg"]]', "did you mean 'ddpg'"),
        ('[["limb", "ddpg"], ["limb", "ddpg"]]', "twice"),
    ],
)
def test_a_study_names_its_claims(tmp_path, claims, words):
    text = f'tasks = ["reacher_hard"]\nseeds = [0]\nclaims = {claims}\n[methods.ddpg]\n[methods.limb]\n[methods.sac]\n'
    path = write(tmp_path, text)
    if words is None:
        study = Study(plan.load(path), tmp_path / "runs")
        invent(study)
        found = report.gather(report.find(path, study.runs), lambda sentence: None, with_certificates=False)
        assert [(claim.first, claim.second) for claim in found.summary.claims] == [("limb", "ddpg")]
        return
    with pytest.raises(EudaError, match=words) as caught:
        plan.load(path)
    assert "\n" not in str(caught.value)


def test_a_study_without_any_run_still_has_a_report(tmp_path):
    path = write(tmp_path, COMPARED)
    made = report.gather(report.find(path, tmp_path / "runs"), lambda sentence: None, with_certificates=False)
    files = report.write(made, tmp_path / "out")
    assert {file.name for file in files} >= {"report.html", "curves-steps.png", "curves-hours.pdf", "summary.json"}
    assert "nothing yet, 3 seeds planned" in (tmp_path / "out" / "report.html").read_text("utf-8")


def test_the_page_is_whole_and_loads_nothing(gathered):
    text = page.build(gathered)
    packed = re.search(r'<script type="text/plain" id="plotly">([^<]+)</script>', text)
    assert gzip.decompress(base64.b64decode(packed[1])).decode() == page.plotly_js()
    ours = text.replace(packed[1], "")
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?!data:)[^"'\s>]*//""", ours)
    assert "Compared &lt;b&gt;&amp;&lt;/b&gt; drawn" in ours
    assert "<img" not in ours
    for part in ("curves", "returns", "claims", "overall", "shares", "choices", "missing", "runs"):
        assert f'<section id="{part}">' in ours
    assert "ddpg: 3 seeds, all to 200 k, longest 400 k steps" in ours
    assert "seed 0: waiting" in ours
    assert "stopped at 200\u202f000 of 400\u202f000 steps" in ours


def test_the_page_runs_its_own_two_scripts_and_no_other(gathered):
    """The policy names them by their hashes; everything else in the page is data."""
    text = page.build(gathered)
    policy = html.unescape(re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)[1])
    allowed = re.search(r"script-src ([^;]+);", policy)[1].split()
    scripts = re.findall(r"<script(?: type=\"([^\"]+)\")?[^>]*>(.*?)</script>", text, re.DOTALL)
    (own,) = [content for kind, content in scripts if kind not in ("text/plain", "application/json")]
    hashes = [hashlib.sha256(content.encode()).digest() for content in (own, page.plotly_js())]
    assert allowed == [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes]
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    parser = Attributes()
    parser.feed(text)
    assert "data-curve" in parser.names
    assert not [name for name in parser.names if name.startswith("on")]  # no handler in an attribute
    served = page.build(report.dataclasses.replace(gathered, stamp="1"))
    assert "connect-src &#39;self&#39;" in served


class Attributes(html.parser.HTMLParser):
    """The names of all attributes of a page."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def handle_starttag(self, tag, attrs):
        self.names |= {name for name, _ in attrs}


def test_pages_can_share_one_plotting_library(gathered, tmp_path):
    bare = report.dataclasses.replace(gathered, axes=("steps",))
    first, *_ = report.write(bare, tmp_path / "results" / "one", library=tmp_path / "results" / "plotly.min.js")
    text = first.read_text("utf-8")
    assert '<script src="../plotly.min.js"></script>' in text
    assert len(text) < 0.2 * len(page.build(bare))


def test_the_page_says_how_new_its_data_is_and_is_the_same_twice(gathered):
    text = page.build(gathered)
    assert "newest run begun or resumed 2026-03-01 09:00:25 UTC" in text
    assert page.build(gathered) == text


EVIL = "<script>alert(1)</script>"


def test_videos_and_certificates_are_in_the_page_and_escaped(gathered, tmp_path):
    film = tmp_path / "film.mp4"
    film.write_bytes(b"not really a film")
    shown = certificates.Shown("reacher_hard", "limb", EVIL, EVIL, (EVIL, "none & nothing"), 1e-15, EVIL)
    text = page.build(report.dataclasses.replace(gathered, videos=[("a <film>", film)], certificates=[shown]))
    assert "data:video/mp4;base64," in text
    assert "a &lt;film&gt;" in text
    assert "none &amp; nothing" in text
    assert text.count("&lt;script&gt;alert(1)") == 4
    assert EVIL not in text


def test_scenes_are_pages_beside_it_in_frames_that_may_only_run(gathered):
    scene = scenes.Scene(EVIL, "scenes/0.html", b"<p>it moves</p>", f"return 1 & {EVIL}")
    text = page.build(dataclasses.replace(gathered, scenes=(scene,)))
    assert '<iframe src="scenes/0.html"' in text
    assert 'sandbox="allow-scripts"' in text
    assert "frame-src &#39;self&#39; file:" in text
    assert EVIL not in text
    plain = page.build(gathered)
    assert "<iframe" not in plain
    assert "frame-src &#39;none&#39;" in plain


def test_scenes_of_a_served_report_are_refused(tmp_path, capsys):
    assert cli.main(["report", str(tmp_path), "--serve", "--scenes"]) == 2
    assert capsys.readouterr().err == "euda: --scenes are pages beside the report: name its folder with --out\n"


def test_certificates_are_made_once(tmp_path, study, monkeypatch):
    """In the cache that training has too, where a file is believed only under its own key and with its own types."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said = []
    sources = [s for s in results_table.of_study(study).sources if s.curve == "ddpg"][:1]
    for _ in range(2):
        (shown,) = certificates.of_runs(tuple(sources), said.append)
        assert shown.verdict == "exact"
    assert said == ["turning the world of reacher_hard (limb features)"]
    (path,) = (tmp_path / "euda" / "certificates").iterdir()
    kept = json.loads(path.read_text())
    for change in ({"key": "of another model or version"}, {"verdict": [EVIL]}, {"worst": EVIL}, {"causes": EVIL}):
        path.write_text(json.dumps(kept | change))
        (again,) = certificates.of_runs(tuple(sources), said.append)
        assert again == shown
    assert len(said) == 5
    path.rename(path.with_name(f"{'0' * 32}.json"))  # under the name of another
    certificates.of_runs(tuple(sources), said.append)
    assert len(said) == 6


def test_reports_and_runs_share_their_certificates(tmp_path, study, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(certificates, "STATES", premise.STATES)
    (source,) = [s for s in results_table.of_study(study).sources if s.curve == "rotate 25 %"][:1]
    premise.check(source.config, print)
    said = []
    certificates.of_runs((source,), said.append)
    assert said == []


def test_robots_and_environments_have_certificates_too(tmp_path):
    """A file, an environment of Gymnasium's, and a file that is gone: each has its line."""
    shutil.copyfile(TRIPOD, tmp_path / "tripod.xml")
    (tmp_path / "gone.xml").write_text(TRIPOD.read_text().replace('model="tripod"', 'model="gone"').replace("50", "51"))
    robots = ["tripod.xml", "gone.xml", "Reacher-v5"]
    text = f"tasks = {json.dumps(robots)}\nseeds = [0]\nsteps = 100\n[methods.rotate]\nshare = 0.5\n" + "".join(
        f'[robots."{name}"]\n' + ('reward = "run"\ndirection = [1, 0]\n' if name.endswith("xml") else "")
        for name in robots
    )
    study = Study(plan.load(write(tmp_path, text)), tmp_path / "runs")
    (tmp_path / "gone.xml").unlink()
    lines = certificates.of_runs(results_table.of_study(study).sources, lambda sentence: None)
    assert [(line.task, line.verdict != "not tested") for line in lines] == [
        ("tripod", True), ("gone", False), ("Reacher-v5", True),
    ]  # fmt: skip
    assert "gone.xml" in lines[1].causes[0]


def test_runs_of_a_folder_get_labels_of_their_own(study, tmp_path):
    found = results_table.of_folders([study.runs])
    assert set(found.curves) == {"ddpg", "limb", "rotate 25 %", "rotate 50 %", "rotate-auto"}
    with pytest.raises(EudaError, match="no runs"):
        results_table.of_folders([tmp_path])


def test_settings_tell_runs_of_one_label_apart(tmp_path):
    text = COMPARED + '[methods.small]\nmethod = "ddpg"\noverrides.mlp.hidden_size = 9\n'
    study = Study(plan.load(write(tmp_path, text)), tmp_path / "runs")
    invent(study)
    found = results_table.of_folders([study.runs])
    assert {"ddpg (architecture.hidden_size 9)", "ddpg (architecture.hidden_size 256)"} <= set(found.curves)


def of_configs(*configs, names=None):
    names = names or [f"runs/{i}" for i in range(len(configs))]
    sources = [labels.source(config, Path(name), name) for config, name in zip(configs, names, strict=True)]
    return [(one.task, one.curve) for one in labels.told_apart(sources)]


@pytest.mark.parametrize(
    ("section", "name", "value", "expected"),
    [
        ("", "cone", "elliptic", ["limb (cone default)", "limb (cone elliptic)"]),
        ("", "episode_steps", 99, ["limb (episode_steps 1000)", "limb (episode_steps 99)"]),
        ("replay", "batch_size", 99, ["limb (replay.batch_size 256)", "limb (replay.batch_size 99)"]),
        ("evaluation", "episodes", 99, ["limb (evaluation.episodes 10)", "limb (evaluation.episodes 99)"]),
        ("", "steps", 99, ["limb (runs/0)", "limb (runs/1)"]),  # the same run twice, once longer
        ("", "seed", 99, ["limb", "limb"]),
    ],
)
def test_a_setting_that_differs_is_in_the_label(section, name, value, expected):
    """Two runs that differ in their cone alone were one curve, and the second hid the first."""
    plain = RunConfig("reacher_hard", seed=3).to_json()
    changed = {**plain, section: {**plain[section], name: value}} if section else {**plain, name: value}
    found = of_configs(*(RunConfig.from_json(config) for config in (plain, changed)))
    assert [curve for _, curve in found] == expected


def test_labels_of_runs_that_differ_in_much_stay_short_and_apart():
    configs = [
        RunConfig("reacher_hard", cone=cone, episode_steps=episode, checkpoint_every=every, evaluation=judged)
        for cone, episode, every, judged in (
            ("default", 1000, 10, EvaluationConfig(5)),
            ("elliptic", 99, 20, EvaluationConfig(6)),
            ("elliptic", 99, 20, EvaluationConfig(7)),
        )
    ]
    names = [curve for _, curve in of_configs(*configs)]
    assert len(set(names)) == 3
    assert max(map(len, names)) < 100
    assert all("more: " in name for name in names)


def robot(path, model):
    return RobotConfig(path, None, {"bodies": model}, "run", direction=(1, 0, 0))


def test_robots_are_named_by_their_models_then_by_their_folders(tmp_path):
    """Their models are hashes, which are nobody's names."""
    one, two = (
        RunConfig("scene.xml", robot=robot(f"robots/{name}/scene.xml", f"{name}0123456789abcdef"))
        for name in ("go2", "a1")
    )
    assert of_configs(one, two) == [("scene.xml (go2)", "limb"), ("scene.xml (a1)", "limb")]
    moved = dataclasses.replace(one, robot=robot("elsewhere/scene.xml", "go20123456789abcdef"), seed=1)
    assert of_configs(one, moved) == [("scene.xml", "limb")] * 2
    (tmp_path / "go2").mkdir()
    file = tmp_path / "go2" / "scene.xml"
    file.write_text('<!-- go2 -->\n<mujoco  model = "go2 scene">\n</mujoco>')
    named = dataclasses.replace(one, robot=robot(str(file), "go20123456789abcdef"))
    assert of_configs(named) == [("go2 scene", "limb")]
    assert of_configs(named, two) == [("go2 scene", "limb"), ("scene.xml", "limb")]
    slow = dataclasses.replace(one, robot=dataclasses.replace(one.robot, control_timestep=0.04))
    assert of_configs(one, slow)[1] == ("scene.xml", "limb (robot.control_timestep 0.04)")


def test_the_same_run_twice_is_two_curves_named_by_their_folders():
    plain = RunConfig("reacher_hard")
    names = ["before/limb-seed0", "before/limb-seed1", "after/limb-seed0"]
    found = of_configs(plain, dataclasses.replace(plain, seed=1), plain, names=names)
    assert [curve for _, curve in found] == ["limb (before)", "limb (before)", "limb (after)"]


def test_runs_from_several_folders_are_compared(study, tmp_path, capsys):
    """On the command line and from Python."""
    chosen = [study.folder_of(study.plan.runs[i]) for i in (0, 1, 2)]
    arguments = ["report", *map(str, chosen), "--out", str(tmp_path / "out"), "--no-certificates"]
    assert cli.main(arguments) == 0
    rows = json.loads((tmp_path / "out" / "summary.json").read_text())["rows"]
    figure = euda.draw_runs(*chosen)
    assert sorted({row["curve"] for row in rows if row["runs"]}) == sorted(
        {results_table.of_folders([folder]).curves[0] for folder in chosen}
    )
    assert [axes.get_title() for axes in figure.axes] == list(dict.fromkeys(row["task"] for row in rows))
    assert cli.main(["report", str(chosen[0]), str(tmp_path / "nowhere"), "--out", str(tmp_path / "b")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_the_command_writes_a_report(study, tmp_path, capsys):
    arguments = ["report", str(study.runs), "--out", str(tmp_path / "out"), "--no-certificates"]
    assert cli.main(arguments) == 0
    assert "open" in capsys.readouterr().out
    assert (tmp_path / "out" / "curves-steps.svg").is_file()
    assert not (tmp_path / "out" / "curves-hours.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "STUDY|RUN [RUN ...] is missing"),
        (["nowhere"], "a study (a .toml file) or folders"),
        (["nowhere.toml"], "cannot read"),
        (["."], "--out"),
        ([".", "--serve", "--port", "70000"], "from 0 to 65535"),
    ],
)
def test_bad_reports_are_one_sentence(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert words in error
    assert "\n" not in error


def test_the_server_is_for_this_machine_and_follows_the_runs(tmp_path):
    study = Study(plan.load(write(tmp_path, COMPARED)), tmp_path / "runs")
    invent(study)
    follower = server.Follower(report.find(tmp_path / "tiny.toml", study.runs), lambda sentence: None, False)
    with server.make_server(follower) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        assert listening.server_address[0] == "127.0.0.1"

        def ask(path, host="localhost"):
            connection = http.client.HTTPConnection("127.0.0.1", listening.server_port)
            connection.request("GET", path, headers={"Host": f"{host}:{listening.server_port}"})
            answer = connection.getresponse()
            content = answer.read().decode()
            connection.close()
            return answer.status, content

        status, text = ask("/")
        stamp = ask("/stamp")[1]
        assert status == 200
        assert f'data-stamp="{stamp}"' in text
        with (study.folder_of(study.plan.runs[0]) / "metrics.jsonl").open("a") as file:
            file.write("\n")
        assert ask("/stamp")[1] != stamp
        assert f'data-stamp="{stamp}"' not in ask("/")[1]
        assert ask("/", "elsewhere.example")[0] == 403
        assert ask("/../secret")[0] == 404
        listening.shutdown()
        thread.join()
    with pytest.raises(EudaError, match="choose another"), server.make_server(follower) as first:
        server.make_server(follower, first.server_port)
