"""Tables, figures and the page, from runs with made-up returns."""

import base64
import gzip
import http.client
import json
import re
import threading

import numpy as np
import polars as pl
import pytest
from study_files import COMPARED, invent, write

from euda import cli
from euda.errors import EudaError
from euda.study import figures, page, plan, report, serve, summary, table
from euda.study.record import Study


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """26 runs: one is missing, one is shorter than the others."""
    folder = tmp_path_factory.mktemp("study")
    study = Study(plan.load(write(folder, COMPARED, "compared")), folder / "runs")
    invent(study, without=(5,), short=(0,))
    return study


@pytest.fixture(scope="module")
def found(study):
    return table.of_study(study)


@pytest.fixture(scope="module")
def gathered(study):
    subject = report.find(study.runs.parent / "compared.toml", study.runs)
    return report.gather(subject, lambda sentence: None, with_certificates=False)


def test_the_table_has_a_row_per_run_and_evaluation(found, study):
    assert found.frame.height == 24 * 21 + 11
    assert found.frame.schema == pl.Schema(table.SCHEMA)
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
    assert "3 lines are no events and were skipped (line 3, 5, 6)" in error
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
        'title = "Shares"\ntasks = ["reacher_hard"]\nseeds = [0, 1]\nsteps = 400000\n'
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
        numbers = summary.summarise(table.of_study(study))
        assert [(best.best, best.curve, sorted(best.scores)) for best in numbers.shares] == expected
    assert "50 % (rotate 50 %)" in page._shares(numbers)


def test_figures_are_files_of_their_kind_and_the_same_twice(found):
    heads = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for kind, head in heads.items():
        first, second = (figures.render(figures.learning_curves(found, "hours"), kind) for _ in range(2))
        assert first.startswith(head)
        assert first == second
    drawn = figures.choices(found)
    assert drawn is not None
    assert len(drawn.axes) == 2


def test_a_study_without_any_run_still_has_a_report(tmp_path):
    path = write(tmp_path, COMPARED)
    made = report.gather(report.find(path, tmp_path / "runs"), lambda sentence: None, with_certificates=False)
    files = report.write(made, tmp_path / "out")
    assert {file.name for file in files} >= {"report.html", "curves-steps.png", "curves-hours.pdf", "summary.json"}
    assert "nothing yet, 3 seeds planned" in (tmp_path / "out" / "report.html").read_text("utf-8")


def test_the_page_is_whole_and_loads_nothing(gathered):
    text = page.build(gathered)
    packed = re.search(r'<script type="text/plain" id="plotly">([^<]+)</script>', text)
    assert gzip.decompress(base64.b64decode(packed[1])).decode() == page.plotly.offline.get_plotlyjs()
    ours = text.replace(packed[1], "")
    assert not re.search(r"<script>[^<]*Plotly", ours)  # nothing may run before it is unpacked
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?!data:)[^"'\s>]*//""", ours)
    assert "Compared &lt;b&gt;&amp;&lt;/b&gt; drawn" in ours
    assert "<img" not in ours
    for part in ("curves", "returns", "overall", "shares", "choices", "missing", "runs"):
        assert f'<section id="{part}">' in ours
    assert "ddpg: 3 seeds, all to 200 k, longest 400 k steps" in ours
    assert "seed 0: waiting" in ours
    assert "stopped at 200\u202f000 of 400\u202f000 steps" in ours


def test_the_page_says_how_new_its_data_is_and_is_the_same_twice(gathered):
    text = page.build(gathered)
    assert "newest run begun or resumed 2026-03-01 09:00:25 UTC" in text
    assert page.build(gathered) == text


def test_videos_and_certificates_are_in_the_page(study, gathered, tmp_path):
    film = tmp_path / "film.mp4"
    film.write_bytes(b"not really a film")
    proof = {"task": "reacher_hard", "features": "limb", "cone": "pyramidal", "verdict": "exact", "worst": 1e-15,
             "states": 40, "yaws": 2, "causes": ["none & nothing"]}  # fmt: skip
    text = page.build(report.dataclasses.replace(gathered, videos=[("a <film>", film)], certificates=[proof]))
    assert "data:video/mp4;base64," in text
    assert "a &lt;film&gt;" in text
    assert "none &amp; nothing" in text


def test_certificates_are_made_once(tmp_path, study):
    said = []
    sources = [s for s in table.of_study(study).sources if s.planned.curve == "ddpg"][:1]
    for _ in range(2):
        (proof,) = report.certificates(tuple(sources), tmp_path, said.append)
        assert proof["verdict"] == "exact"
    assert said == ["turning the world of reacher_hard (limb features)"]


def test_runs_of_a_folder_get_labels_of_their_own(study, tmp_path):
    found = table.of_folder(study.runs)
    assert set(found.curves) == {"ddpg", "limb", "rotate 25 %", "rotate 50 %", "rotate-auto"}
    with pytest.raises(EudaError, match="no runs"):
        table.of_folder(tmp_path)


def test_settings_tell_runs_of_one_label_apart(tmp_path):
    text = COMPARED + '[methods.small]\nmethod = "ddpg"\noverrides.mlp.hidden_size = 9\n'
    study = Study(plan.load(write(tmp_path, text)), tmp_path / "runs")
    invent(study)
    assert {"ddpg (mlp.hidden_size 9)", "ddpg (mlp.hidden_size 256)"} <= set(table.of_folder(study.runs).curves)


def test_the_command_writes_a_report(study, tmp_path, capsys):
    arguments = ["report", str(study.runs), "--out", str(tmp_path / "out"), "--no-certificates"]
    assert cli.main(arguments) == 0
    assert "open" in capsys.readouterr().out
    assert (tmp_path / "out" / "curves-steps.svg").is_file()
    assert not (tmp_path / "out" / "curves-hours.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "a study (a .toml file) or a folder"),
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
    follower = serve.Follower(report.find(tmp_path / "tiny.toml", study.runs), lambda sentence: None, False)
    with serve.make_server(follower) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        assert server.server_address[0] == "127.0.0.1"

        def ask(path, host="localhost"):
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
            connection.request("GET", path, headers={"Host": f"{host}:{server.server_port}"})
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
        server.shutdown()
        thread.join()
    with pytest.raises(EudaError, match="choose another"), serve.make_server(follower) as first:
        serve.make_server(follower, first.server_port)
