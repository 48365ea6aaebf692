"""The page of all heads from made-up records."""

import pytest
import spacy

from benchmarks.heads_page import CORPORA, HEADS, heads_section
from benchmarks.systems import SYSTEMS, default_row
from spacy_spanner.recipe import RECOMMENDED


def head_run(dataset, system, f, **more):
    return {
        "dataset": dataset,
        "encoder": CORPORA[dataset],
        "system": system,
        "learn_rate": 0.003,
        "seed": 0,
        "steps": 10,
        "f": f,
        **more,
    }


def head_runs():
    calibrated = {"f": 81.0, "calibration_error": 3.0, "calibration_chance": 2.0}
    held_out = {"f": 80.5, "calibration_error": 4.0, "calibration_chance": 2.5}
    fitted = {"calibration_error": 9.0, "fitted": calibrated, "held_out": held_out}
    return [
        head_run("demo", "ner", 60.0),
        head_run("demo", "spancat", 78.0),
        head_run("demo", "spancat", 80.0, seed=1),
        head_run("demo", "global_pointer", 82.0, **fitted),
        head_run("demo", "global_pointer", 84.0, seed=1, **fitted),
        head_run("demo", "span_ner", 79.0),
        head_run("demo", "biaffine_ner", 99.0),  # no row of this table
        head_run("conll04", "ner", 70.0),
        head_run("conll04", "bl_span_ner", 75.0),
        head_run("conll04", "global_pointer", 69.0),
        head_run("conll04", "span_ner", 99.0, steps=5),  # fewer of the systems have these steps
        head_run("genia", "global_pointer", 74.0),
        head_run("wnut17", "ner", 1.0, encoder="lstm"),  # another encoder
    ]


def test_heads_stand_side_by_side():
    text = heads_section(head_runs())
    assert "| system | demo | conll04 | genia | ahead |" in text
    assert "| `spancat` | 79.0 ± 1.4 |  |  |  |" in text
    # Of genia no component of spaCy was measured, so nothing is ahead there.
    assert "| `global_pointer` | **83.0 ± 1.4** | **69.0** | **74.0** | 1 of 2 |" in text
    assert "| `span_ner` | 79.0 |  |  | 0 of 1 |" in text and "| `bl_both`" not in text
    assert "| `bl_span_ner` |  | 75.0 |  | 1 of 1 |" in text
    assert "| distance of the bold one | +4.0 | -1.0 |  |  |" in text and "biaffine" not in text
    row = "| demo, `lstm` | `spancat` | 79.0 ± 1.4 | `global_pointer` | 83.0 ± 1.4 | +4.0 | yes |"
    assert f"{row} 9.0 ± 0.0 | 3.0 ± 0.0 | 4.0 ± 0.0 | 2.0 ± 0.0 |" in text
    assert (
        "| conll04, `lstm_vectors` | `ner` | 70.0 | `global_pointer` | 69.0 | -1.0 |  |  |  |  |  |"
        in text
    )


def test_fitted_thresholds_are_compared_on_both_sides():
    fits = {"fitted": {"f": 82.0}, "held_out": {"f": 79.0}}

    def parts(n_held_out):
        """Of three runs of spancat, the first `n_held_out` were judged on held-out spans, too."""
        peers = [
            head_run(
                "demo", "spancat", 78.0, seed=i, **dict(list(fits.items())[: 1 + (i < n_held_out)])
            )
            for i in range(3)
        ]
        runs = [run for run in head_runs() if run["system"] != "spancat"]
        unfitted, rest = heads_section([*runs, *peers]).split("find-threshold` would")
        return unfitted, *rest.split("which flatters")

    unfitted, held_out, fitted = parts(3)
    assert "| 78.0 ± 0.0 | `global_pointer` | 83.0 ± 1.4 | +5.0 |" in unfitted
    assert "| `spancat` | 82.0 ± 0.0 |" in fitted and "**81.0 ± 0.0**" in fitted
    assert "| distance of the bold one | -1.0 |  |  |  |" in fitted
    assert "| `spancat` | 79.0 ± 0.0 |" in held_out and "**80.5 ± 0.0**" in held_out
    assert "| distance of the bold one | +1.5 |  |  |  |" in held_out
    # Runs of ours that fitted fewer numbers; the better one of spaCy's is not known.
    assert "span_ner" not in fitted + held_out
    _, held_out, again = parts(2)
    assert again == fitted and "spancat" not in held_out
    assert "| `ner` |  | 70.0 |  |  |" in held_out and "distance" not in held_out


def test_nothing_is_shown_for_what_was_not_measured():
    assert heads_section([]) == ""
    text = heads_section([head_run("demo", "span_ner", 70.0)])
    assert "| `span_ner` | 70.0 |  |" in text and "distance" not in text


def test_the_bold_rows_are_those_of_the_recommended_systems(monkeypatch):
    assert set(HEADS) <= set(SYSTEMS) and default_row(RECOMMENDED) in HEADS
    assert default_row("global_pointer") == "global_pointer"
    bundle = SYSTEMS[default_row("bundled_ner")]
    nlp = spacy.blank("en")
    nlp.add_pipe("bundled_ner")
    model = nlp.config["components"]["bundled_ner"]["model"]
    assert bundle.model["decode_from"] == model["decode_from"]
    assert default_row("hierarchical_ner") == "hire_mix_07"
    monkeypatch.delitem(SYSTEMS, "global_pointer")
    with pytest.raises(ValueError, match=r"No row of .* is global_pointer"):
        default_row("global_pointer")
