"""The tables and figures of the papers as rows that can be run: `python -m benchmarks paper NAME`.

A table is its rows (a system and its options, and the published figure), the corpora here, and what is
measured. Every row of a table takes the same encoder, steps and learning rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, List, Sequence, Tuple

from .accuracy import Run
from .data import DATASETS
from .systems import SYSTEMS, System, name_of

CONLL04, GENIA = ("conll04",), ("genia",)
BOTH = CONLL04 + GENIA
ENCODER, LEARN_RATE, SEEDS = "hash", 0.002, (0, 1)

# Measures that every run has, and their names in its record.
PLAIN = {
    "F": "f",
    "training words/s": "train_words_per_second",
    "words/s": "predict_words_per_second",
    "proposals": "proposals_per_gold",
}

Rows = Dict[str, Tuple[System, str]]  # name of the row -> system, published figure


@dataclass(frozen=True)
class PaperTable:
    paper: str
    title: str
    published_on: str  # corpora and measure of the published figures
    rows: Rows
    corpora: Tuple[str, ...] = CONLL04  # run here
    full: str = ""  # of ablations: the row that the others leave something out of
    measures: Tuple[str, ...] = ("F",)
    lengths: str = ""  # groups by length of entity, as for `analyze --buckets`

    @property
    def needs_analysis(self) -> bool:
        """Whether groups or kinds of errors are measured, which older runs do not have."""
        return not set(self.measures) <= PLAIN.keys() | {"relations F", "error reduction"}


def of(name: str, **model: Any) -> System:
    """A system of the benchmarks with other options."""
    return replace(SYSTEMS[name], model={**SYSTEMS[name].model, **model})


def bundle(alpha: float = 0.1, **seq: Any) -> System:
    """SeqNER and SpanNER together, with other options than those of the config."""
    head = {"@architectures": "spacy-spanner.SeqNER.v1", "tok2vec": None, "scheme": "BIOES", **seq}
    return of("bl_span_ner", alpha=alpha, seq=head)


def bundled_with(architecture: str, **options: Any) -> System:
    """Another tagger in the place of SeqNER."""
    head = {"@architectures": f"spacy-spanner.{architecture}.v1", "tok2vec": None, **options}
    return of("bl_seq_ner", seq=head)


GP, LL, MIN, BL, HIRE = (*("Global Pointer", "Locate and Label", "MIN", "Bundling", "Hire-NER"),)
POINTERS: Rows = {"Global Pointer": (of("global_pointer"), "88.57 / 74.64")}
TAGGER = of("seq_ner_crf")
FOUR: Rows = {
    "SeqNER": (of("seq_ner"), "90.62"),
    "BL-SeqNER": (of("bl_seq_ner"), "91.35"),
    "SpanNER": (of("span_ner"), "90.89"),
    "BL-SpanNER": (of("bl_span_ner"), "91.64"),
}
UNPUBLISHED: Rows = {name: (system, "") for name, (system, _) in FOUR.items()}
MIN_ROWS: Rows = {
    "MIN": (of("min"), "92.53 / 46.63 / 75.57"),
    "without boundary": (of("min", use_boundary=False), "91.40 / 43.05 / 73.47"),
    "without type": (of("min", use_type=False), "91.51 / 43.82 / 74.15"),
    "without interaction": (of("min", use_interaction=False), "91.99 / 44.77 / 74.85"),
    "NER only": (of("min_ner_only"), "90.94 / 41.81 / 72.31"),
}
LL_ROWS: Rows = {
    "full": (of("locate_and_label"), "87.41 / 84.05"),
    "without regressor": (of("locate_and_label", use_regressor=False), "85.18 / 82.54"),
    "without filter": (of("locate_and_label", use_filter=False), "86.89 / 83.30"),
    "without both": (
        of("locate_and_label", use_regressor=False, use_filter=False),
        "85.12 / 82.85",
    ),
    "without Soft-NMS": (of("locate_and_label", use_soft_nms=False), "87.28 / 84.02"),
    "without soft examples": (of("locate_and_label", eta=0.0), "86.54 / 83.89"),
}
HIRE_ALL = of("hire")
HIRE_BASE: Rows = {"base": (of("hire_base"), "91.60")}

PAPERS: Dict[str, PaperTable] = {
    "global-pointer-table-2": PaperTable(
        GP,
        "Table 2: flat and nested entities",
        "F on CoNLL04 / GENIA, BERT base",
        {"CRF tagger (BERT-CRF)": (TAGGER, "85.46 / 73.02"), **POINTERS},
        BOTH,
    ),
    "global-pointer-table-3": PaperTable(
        GP,
        "Table 3: relations",
        "F of relations on NYT / WebNLG / ADE",
        {"Global Pointer": (of("relations"), "95.6 / 98.0 / 90.1")},
        measures=("relations F", "F"),
    ),
    "global-pointer-table-4": PaperTable(
        GP,
        "Table 4: speed",
        "times as fast as BERT-CRF in training, three Chinese corpora",
        {
            "CRF tagger (BERT-CRF)": (TAGGER, "1"),
            "Global Pointer": (of("global_pointer"), "1.56, 1.22, 1.52"),
        },
        measures=("training words/s", "words/s"),
    ),
    "global-pointer-table-5": PaperTable(
        GP,
        "Table 5: efficient form",
        "F on People's Daily / CLUENER / CMeEE",
        {
            "Global Pointer": (of("global_pointer"), "95.51 / 79.44 / 65.98"),
            "efficient": (of("efficient_global_pointer"), "95.36 / 80.04 / 66.54"),
        },
        BOTH,
    ),
    "global-pointer-table-6": PaperTable(
        GP,
        "Table 6: groups by length and density",
        "F by group; compared with PFN, which is not here",
        {"CRF tagger (BERT-CRF)": (TAGGER, ""), "Global Pointer": (of("global_pointer"), "")},
        measures=("F", "entity_length", "entity_tokens"),
        lengths="length=1-2,3-5,6-",
    ),
    "global-pointer-table-7": PaperTable(
        GP,
        "Table 7: position embedding and loss",
        "F on CoNLL04",
        {
            "Global Pointer": (of("global_pointer"), "88.57"),
            "without RoPE": (of("global_pointer", use_rope=False), "77.14"),
            "binary cross-entropy": (of("global_pointer", loss="binary"), "88.48"),
        },
        full="Global Pointer",
    ),
    "locate-and-label-table-1": PaperTable(
        LL,
        "Table 1: nested entities",
        "F on GENIA",
        {"Biaffine": (of("biaffine_ner"), "80.50"), "ours": (of("locate_and_label"), "80.54")},
        GENIA,
    ),
    "locate-and-label-table-2": PaperTable(
        LL,
        "Table 2: lengths covered by seeds, or by regression alone",
        "F by length on ACE04",
        {
            "seeds of 1-6 words": (of("locate_and_label_6"), ""),
            "without regressor": (of("locate_and_label_6_no_regressor"), ""),
        },
        GENIA,
        full="seeds of 1-6 words",
        measures=("F", "entity_length"),
        lengths="length=1-4,5-6,7-",
    ),
    "locate-and-label-table-3": PaperTable(
        LL,
        "Table 3: ablations, by length; proposals per entity (4.3)",
        "F on ACE04 / KBP17",
        LL_ROWS,
        GENIA,
        full="full",
        measures=("F", "entity_length", "proposals"),
        lengths="length=1-4,5-9,10-",
    ),
    "locate-and-label-table-7": PaperTable(
        LL,
        "Table 7: flat entities",
        "F on CoNLL03 (not free) / Weibo",
        {"ours": (of("locate_and_label"), "92.94 / 69.16")},
    ),
    "min-table-2": PaperTable(
        MIN,
        "Table 2: baselines",
        "F on CoNLL03 / WNUT17 / JNLPBA",
        {
            "RNN-BiLSTM-CRF": (of("min_ner_only"), "90.94 / 41.81 / 72.31"),
            "BiLSTM-Pointer": (of("bilstm_pointer"), "90.32 / 38.98 / 71.13"),
            "HSCRF": (of("hscrf"), "91.53 / - / 72.39"),
            "HCRA (Hire-NER)": (HIRE_ALL, "91.96 / - / -"),
            "MIN": (of("min"), "92.53 / 46.63 / 75.57"),
        },
    ),
    "min-table-3": PaperTable(
        MIN, "Table 3: ablations", "F on CoNLL03 / WNUT17 / JNLPBA", MIN_ROWS, full="MIN"
    ),
    "min-figure-2": PaperTable(
        MIN,
        "Figure 2: F by length",
        "a figure without numbers",
        {
            "RNN-BiLSTM-CRF": (of("min_ner_only"), ""),
            "HSCRF": (of("hscrf"), ""),
            "MIN": (of("min"), ""),
        },
        measures=("F", "entity_length"),
        lengths="length=1,2,3,4,5,6-",
    ),
    "bundling-table-3": PaperTable(BL, "Table 3: both forms", "F on CoNLL04", FOUR),
    "bundling-table-4": PaperTable(
        BL,
        "Table 4: earlier systems (SpERT 88.94 on CoNLL04)",
        "F on CoNLL04",
        {"BL-SpanNER": FOUR["BL-SpanNER"]},
    ),
    "bundling-table-6": PaperTable(
        BL,
        "Table 6: self-diagnosis and pairwise diagnosis",
        "groups by length of entity and text, consistency and density",
        UNPUBLISHED,
        measures=("F", "entity_length", "text_length", "label_consistency", "entity_density"),
    ),
    "bundling-table-7": PaperTable(
        BL, "Table 7: error rates", "a heat map", UNPUBLISHED, measures=("F", "boundary", "type")
    ),
    "bundling-table-8": PaperTable(
        BL,
        "Table 8: bundling other systems",
        "F on CoNLL03",
        {
            "Hire-NER": (HIRE_ALL, "93.37"),
            "BL-Hire-NER": (bundled_with("HierarchicalNER", mix=0.85), "93.68"),
        },
    ),
    "bundling-figure-5": PaperTable(
        BL,
        "Figure 5: alpha",
        "a figure; .1 is best",
        {
            "alpha 0.1": (of("bl_span_ner"), ""),
            **{f"alpha {alpha}": (bundle(alpha), "") for alpha in (0.3, 0.5, 0.7, 0.9)},
        },
    ),
    "bundling-figure-6": PaperTable(
        BL,
        "Figure 6: CRF or softmax",
        "a CRF gains about .11",
        {
            "BL-SpanNER, CRF": (bundle(tagging="crf"), ""),
            "BL-SpanNER, softmax": (of("bl_span_ner"), ""),
        },
        full="BL-SpanNER, CRF",
    ),
    "bundling-figure-7": PaperTable(
        BL,
        "Figure 7: span vectors",
        "a figure; hybrid is best",
        {
            "hybrid": (of("span_ner"), ""),
            "boundary": (of("span_ner", representation="boundary"), ""),
            "pooling": (of("span_ner", representation="pooling"), ""),
        },
        full="hybrid",
    ),
    "hire-ner-table-2": PaperTable(
        HIRE,
        "Tables 2 to 4: main results",
        "F on CoNLL03 / CoNLL02 / OntoNotes",
        {"Hire-NER": (HIRE_ALL, "91.96 / 87.08 / 87.98")},
    ),
    "hire-ner-table-5": PaperTable(
        HIRE,
        "Table 5: ablations",
        "F on CoNLL03",
        {
            "both": (HIRE_ALL, "91.96"),
            "sentence level": (of("hire_sentence"), "91.80"),
            "document level": (of("hire_document"), "91.79"),
            **HIRE_BASE,
        },
        full="both",
        measures=("F", "error reduction"),
    ),
    "hire-ner-table-6": PaperTable(
        HIRE,
        "Table 6: strategies",
        "F on CoNLL03",
        {
            **HIRE_BASE,
            "mean pooling": (of("hire_sentence", sentence_level="mean"), "91.65"),
            "label embedding": (of("hire_sentence"), "91.80"),
            "dot": (of("hire_document", document_level="dot"), "91.63"),
            "scaled dot": (of("hire_document", document_level="scaled"), "91.75"),
            "cosine": (of("hire_document"), "91.79"),
        },
        measures=("F", "error reduction"),
    ),
    "hire-ner-table-7": PaperTable(
        HIRE,
        "Table 7: words in and out of vocabulary",
        "F of IV, OOTV, OOEV, OOBV on CoNLL03: 93.87, 92.51, 94.12, 86.58 (base); 94.26, 92.95, 94.12, 87.01",
        {**HIRE_BASE, "both": (HIRE_ALL, "")},
        measures=("F", "vocabulary"),
    ),
    "hire-ner-figure-3": PaperTable(
        HIRE,
        "Figure 3: F and time against T",
        "a figure; 500 is best",
        {
            "T = 500": (HIRE_ALL, ""),
            **{f"T = {n}": (of("hire", memory_size=n), "") for n in (50, 100, 250, 1000)},
        },
        measures=("F", "training words/s"),
    ),
}


def runs_of(
    table: PaperTable, corpora: Sequence[str], seeds: Sequence[int], steps: int
) -> List[Run]:
    """The runs of a table, row by row; rows of other tables with the same system are the same runs."""
    return [
        Run(corpus, ENCODER, name_of(system), LEARN_RATE, seed, steps_of(corpus, system, steps))
        for seed in seeds
        for corpus in corpora or table.corpora
        for system, _ in table.rows.values()
    ]


def steps_of(corpus: str, system: System, steps: int = 0) -> int:
    """Training steps: those given, or the budget of the corpus."""
    return steps or DATASETS[corpus].budgets[ENCODER].steps * system.more_steps
