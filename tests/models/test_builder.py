"""Options are declared by the modules: spaCy fills in their defaults and refuses what does not fit."""

from inspect import Parameter, signature

import pytest
import spacy
from spacy.util import registry
from thinc.api import ConfigValidationError

from ..systems import SYSTEMS
from ..test_package import entry_points

SIZES = {"self", "width", "n_labels", "n_relations", "n_given"}
ARCHITECTURES = [
    name
    for group, name in entry_points()
    if group == "spacy_architectures" and hasattr(registry.architectures.get(name), "module")
]


def resolve(name, **options):
    return registry.resolve({"model": {"@architectures": name, **options}})["model"]


def test_all_systems_are_derived():
    assert len(ARCHITECTURES) >= len(SYSTEMS)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_option_is_filled_in_and_explained(name):
    make = registry.architectures.get(name)
    filled = registry.fill({"model": {"@architectures": name}})["model"]
    options = signature(make.module.__init__).parameters
    for option, parameter in options.items():
        if option not in SIZES and option in filled:
            assert parameter.default is not Parameter.empty
            assert filled[option] == parameter.default
            assert option in make.module.__init__.__doc__
    assert filled["learn_rate_scale"] == 1.0 and filled["tok2vec"] is None
    assert "learn_rate_scale:" in make.__doc__


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_wrong_names_are_refused(name):
    with pytest.raises(ConfigValidationError, match="nonsense"):
        resolve(name, nonsense=1)
    with pytest.raises(TypeError):
        registry.architectures.get(name)(nonsense=1)


@pytest.mark.parametrize(
    "name,options",
    [
        ("SeqNER", {"tagging": "hmm"}),
        ("SeqNER", {"dropout": "much"}),
        ("SpanNER", {"max_width": "wide"}),
        ("GlobalPointer", {"loss": "hinge"}),
        ("HierarchicalNER", {"document_level": "on"}),
        ("BundledNER", {"decode_from": "neither"}),
    ],
)
def test_wrong_types_and_literals_are_refused(name, options):
    with pytest.raises(ConfigValidationError, match=next(iter(options))):
        resolve(f"spacy-spanner.{name}.v1", **options)


@pytest.mark.parametrize(
    "name,option,only,other",
    [
        ("EfficientGlobalPointer", "type_input", "pointer", "hidden"),
        ("SpanNER", "context", "max", "mean"),
        ("LocateAndLabel", "offset_activation", "none", "tanh_n"),
        ("LocateAndLabel", "classifier_loss", "ce", "focal"),
        ("LocateAndLabel", "weigh_offsets", False, True),
        ("LocateAndLabel", "drop_crossing", False, True),
        ("HierarchicalNER", "label_set", "types", "tags"),
        ("HierarchicalNER", "conv", "shared", "full"),
        ("ModularizedInteraction", "window_scope", "sum", "softmax"),
        ("ModularizedInteraction", "label_attention", "qin", "lan"),
        ("ModularizedInteraction", "label_heads", 5, 4),
    ],
)
def test_removed_options_are_accepted_as_what_they_were_and_refused_otherwise(
    name, option, only, other
):
    name = f"spacy-spanner.{name}.v1"
    assert registry.fill({"model": {"@architectures": name}})["model"][option] == only
    assert resolve(name, **{option: only}).name == "span_table"
    with pytest.raises(ValueError, match=f"S062.*{option}"):
        resolve(name, **{option: other})


def test_component_in_a_pipeline_refuses_wrong_options():
    with pytest.raises(ConfigValidationError, match="head_sizes"):
        spacy.blank("en").add_pipe("global_pointer", config={"model": {"head_sizes": 3}})
