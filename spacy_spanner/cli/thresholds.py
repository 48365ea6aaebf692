"""`spacy spanner thresholds`: the best thresholds on development data, from one pass."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Dict, List, Optional

import typer
from wasabi import msg

from .options import print_table

if TYPE_CHECKING:
    from spacy.language import Language

    from ..tuning.component import Fit
    from ..tuning.thresholds import ThresholdSetting


def thresholds_cli(
    model: str = typer.Argument(..., help="A trained pipeline"),
    dev: Path = typer.Argument(..., help="Development data (.spacy)", exists=True),
    pipe: Optional[str] = typer.Option(None, "--pipe", "-p", help="Component  [the only one]"),
    per_label: bool = typer.Option(
        False, "--per-label", "-l", help="Also a threshold for each label"
    ),
    temperature: bool = typer.Option(
        False, "--temperature", "-t", help="Also calibrate the confidences"
    ),
    min_gold: int = typer.Option(
        10, min=1, help="Labels with fewer gold spans keep the common threshold"
    ),
    write: Optional[Path] = typer.Option(None, "--write", "-w", help="Save the new pipeline here"),
    in_place: bool = typer.Option(False, "--in-place", help="Change the pipeline itself"),
) -> None:
    """Find the thresholds of the best F on development data.

    Of a relation component, those of entities and of relations are found. Without --write or --in-place
    nothing is changed. No F on this data becomes lower.
    """
    import spacy

    from ..corpus.docs import doc_spans, source_name
    from ..corpus.pairs import unpredicted_pairs
    from ..errors import Errors, UserError
    from ..tuning.component import find_pipe, fit_settings

    if in_place and (write or not Path(model).is_dir()):
        raise typer.BadParameter("--in-place needs the folder of a pipeline, and no --write")
    nlp = spacy.load(model)
    name, component = find_pipe(nlp, pipe)
    pairs = list(unpredicted_pairs(nlp, [str(dev)]))
    options = {"per_label": per_label, "fit": temperature, "min_gold": min_gold}
    fits = fit_settings(nlp, name, pairs, **options)
    kinds = {prefix: "Relations" if prefix else "Entities" for prefix in fits}
    fits = {prefix: fit for prefix, fit in fits.items() if fit.candidates.n_gold}
    if not fits:
        golds = [gold for _, gold in pairs if gold is not None]
        output, key = "ents" if component.gold_key is None else "spans", component.spans_key
        found = [doc_spans(gold, output=output, spans_key=key) for gold in golds]
        if "" in kinds and any(spans is not None for spans in found):
            source = source_name(output, key)
            raise UserError(Errors.S034.format(path=dev, source=source, docs=len(golds), hint=""))
        raise UserError(Errors.S112.format(path=dev, name=name))
    for prefix in kinds.keys() - fits.keys():
        msg.warn(f"{kinds[prefix]}: no gold in {dev}, so their thresholds stay as they are")
    for prefix, fit in fits.items():
        if len(fits) > 1 or prefix:
            msg.divider(kinds[prefix])
        labels = component.cfg[f"{prefix}labels"]
        print_settings([fit.now, fit.best], labels, per_label=per_label)
    save_settings(nlp, name, fits, Path(model) if in_place else write)


def save_settings(nlp: Language, name: str, fits: Dict[str, Fit], target: Optional[Path]) -> None:
    """Change the component and save the pipeline, if there is a folder to save it to."""
    from ..tuning.component import write_setting

    if target is None:
        msg.info("Nothing was changed. Save the pipeline with --write FOLDER or --in-place")
        return
    for prefix, fit in fits.items():
        write_setting(nlp, name, fit.best, prefix)
    nlp.to_disk(target)
    msg.good(f"Saved the pipeline to {target}")


def print_settings(settings: List[ThresholdSetting], labels: List[str], *, per_label: bool) -> None:
    """Print the current and the best setting side by side."""
    rows = [
        ("Threshold", *(f"{setting.threshold:.4f}" for setting in settings)),
        ("Temperature", *(f"{setting.scaling.temperature:.3f}" for setting in settings)),
        ("Bias", *(f"{setting.scaling.bias:.3f}" for setting in settings)),
        ("Precision", *(f"{100 * setting.counts.precision:.2f}" for setting in settings)),
        ("Recall", *(f"{100 * setting.counts.recall:.2f}" for setting in settings)),
        ("F", *(f"{100 * setting.counts.f_score:.2f}" for setting in settings)),
        ("Calibration error", *(f"{100 * setting.calibration.error:.2f}" for setting in settings)),
        ("By chance", *(f"{100 * setting.calibration.chance:.2f}" for setting in settings)),
    ]
    print_table(rows, ("", "Now", "Best"))
    biased = any(any(setting.scaling.label_bias) for setting in settings)
    columns: Dict[str, List[float]] = {}
    for title, setting in zip(("Now", "Best"), settings, strict=True):
        if per_label:
            columns[title] = setting.thresholds.tolist()
        if biased:
            of_labels = setting.scaling.label_bias or [0.0] * len(labels)
            columns[f"{title}, bias"] = list(of_labels)
    if columns:
        rows = [
            (label, *(f"{value:.4f}" for value in values))
            for label, *values in zip(labels, *columns.values(), strict=True)
        ]
        print_table(rows, ("Label", *columns))
