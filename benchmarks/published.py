"""Figures of the papers, to stand beside ours. They were measured on other data or with other encoders:
what can be compared is the order of the rows and their distances."""

from __future__ import annotations

from typing import Dict

# (dataset, encoder) -> what the column holds, and its values by system
PUBLISHED: Dict[tuple, tuple] = {
    ("wnut17", "tuned"): (
        "paper's F (test part, Table 3)",
        {
            "min": "46.63",
            "min_ner_only": "41.81",
            "min_no_boundary": "43.05",
            "min_no_type": "43.82",
            "min_no_interaction": "44.77",
        },
    ),
    ("wnut17", "tuned_intnet"): (
        "paper's F (CoNLL03 / CoNLL02 / OntoNotes, Table 5)",
        {
            "hire_base": "91.60 / 86.65 / 87.58",
            "hire_sentence": "91.80 / 86.95 / 87.86",
            "hire_document": "91.79 / 86.76 / 87.81",
            "hire": "91.96 / 87.08 / 87.98",
        },
    ),
}

RELATIONS_NOTE = (
    "Published for comparison, entities / relations, strict F on the **test** part of CoNLL04: "
    "SpERT 88.94 / 71.47 with BERT base, cased, fine-tuned for 20 epochs (Eberts and Ulges 2019), "
    "an encoder of twelve layers of width 768. Ours are development figures with the encoders "
    "named here."
)
