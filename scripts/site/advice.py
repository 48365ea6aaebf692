"""What to do about a message, beyond what the message says."""

from __future__ import annotations

from typing import Dict

ADVICE: Dict[str, str] = {
    "S001": "`spacy spanner check` prints the span groups of a corpus.",
    "S002": "`spacy spanner check --output ents` shows what the corpus holds.",
    "S003": (
        "Change this option in the config of the component or of its model block. "
        "The [architectures](reference/architectures.md) page has the defaults."
    ),
    "S004": "Copy the pipeline folder again, or train again.",
    "S005": "Do not edit the `model` block of the `config.cfg` of a saved pipeline.",
    "S006": "To change the encoder of a trained component, train it again over the new one.",
    "S007": "A new component also needs labels: from the training data, or by `add_label`.",
    "S008": "The factories write this block by themselves; only a changed config can lack it.",
    "S011": "[Relations](relations.md) shows how to set gold relations by hand.",
    "S012": 'Use `entities = "predict"` if the component should find the entities as well.',
    "S019": "Change this option under `[training.optimizer.learn_rate]`.",
    "S020": "Correct the line, or remove it. Nothing was written.",
    "S021": "The format is guessed from the ending and the first lines of a file.",
    "S022": "Two inputs with the same name would overwrite each other. Or rename one of them.",
    "S024": "Make the predictions again from this gold file, with the texts in the same order.",
    "S025": "Make the file again: `spacy spanner convert`, or spaCy's `DocBin.to_disk`.",
    "S026": "Write a config with `spacy spanner config`.",
    "S027": "Convert the data again, or use `--output spans` if the annotation is in span groups.",
    "S028": "Check the path. A folder must hold `.spacy` files.",
    "S029": "The reason names what is wrong with this path. Correct it and run the command again.",
    "S040": "The vectors are those of `[initialize] vectors` in training.",
    "S041": "[Encoders](encoders.md) lists the options of each block.",
    "S051": "A run can be resumed only with the same inputs, pipeline and settings.",
    "S052": "A folder without `manifest.json` cannot be resumed.",
    "S053": "Or restore the file from a copy.",
    "S054": "Use fewer processes (`--n-process`), a smaller `--batch-size` or a lower `max_cells`.",
    "S055": "Install it into the environment of every worker.",
    "S056": "Free disk space, or correct the permissions of the folder.",
    "S057": "Check that all machines read the same files and have the same versions installed.",
    "S058": "The log of the other process says why it ended.",
    "S059": "Check `--output`: it must be the folder of the run that was stopped.",
    "S060": "The log of the other process says why it ended.",
    "S080": "Check the name, or give the folder of a model that is on this machine.",
    "S086": "Or choose another encoder, such as `hash`.",
    "S087": "See [Encoders](encoders.md#transformers).",
    "S101": "Give names such as `O,B-PER,I-PER`, in the order of their numbers.",
    "S107": "Install the extra, or choose the encoder `hash`.",
    "S108": "Compare the spelling with the config; `spacy spanner config` writes a complete one.",
    "S112": "Annotate the corpus, or name another component or span group.",
    "SW01": (
        "Training goes on without these spans. *Misaligned*: convert with `--alignment-mode`, or "
        "correct the tokenization. *Wider than max_width*: raise it. *Longer than the rows*: raise "
        "`window` and `overlap`. *Inside or across another one*: choose a [system](systems.md) that "
        "finds nested spans. *With a label the component does not have*: give all labels to "
        "`initialize`."
    ),
    "SW02": "Scores are named after the output: `spans_<spans_key>_f`, or `ents_f`.",
    "SW03": (
        "Training goes on without these relations. Both ends must be gold entities in one row: "
        "raise `window` and `overlap` for long documents."
    ),
    "SW04": "See [Relations](relations.md).",
    "SW05": "Or remove the other extension before the pipeline is made.",
    "SW10": "See [Encoders](encoders.md#tagembed).",
}
