"""Heads that are less wide over the small encoder: in its configs alone."""

import pytest

from spacy_spanner.training_config import join_config, read_recipe

WIDTHS = {
    "modularized_interaction": {"hidden": 40},
    "hierarchical_ner": {"hidden_width": 128, "sentence_width": 64},
}


@pytest.mark.parametrize("system", WIDTHS)
def test_widths(system):
    small = join_config(system, "hash")
    assert "heads" not in small
    assert WIDTHS[system].items() <= small["components"][system]["model"].items()
    wide = join_config(system, "transformer")["components"][system]["model"]
    assert not WIDTHS[system].keys() & wide.keys()  # the architecture's own, which are the paper's


def test_other_systems_are_as_they_were():
    assert (
        "hidden"
        not in join_config("bilstm_pointer", "hash")["components"]["bilstm_pointer"]["model"]
    )


@pytest.mark.parametrize("system", WIDTHS)
def test_the_recipe_of_the_paper_has_its_widths(system):
    model = join_config(system, "hash", paper=read_recipe(system))["components"][system]["model"]
    assert not WIDTHS[system].items() <= model.items()
