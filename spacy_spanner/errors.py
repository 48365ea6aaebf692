"""Every message a user can meet, with a code that can be searched for."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Tuple

Rule = Tuple[str, bool, str]  # an option, whether its value is possible, and what would be


class UserError(Exception):
    """An error that a user can cause and correct; commands show it without a traceback."""


class OutputError(UserError, OSError):
    """A path that cannot be written."""


class WithCodes(type):
    """Puts the code in front of each message, as spaCy does."""

    def __getattribute__(cls, code: str) -> str:
        message = super().__getattribute__(code)
        return message if code.startswith("__") else f"[{code}] {message}"


class Errors(metaclass=WithCodes):
    S001 = (
        "Component '{name}': no gold spans under spans_key '{key}' in the training data. "
        "Existing keys: {keys}. Set `spans_key` of the component to one of them, "
        'or `output = "ents"` if the annotation is in `doc.ents`.'
    )
    S002 = (
        "Component '{name}': no entities in the training data (`reference.ents` is empty or missing "
        'everywhere). Existing span groups: {keys}. Set `output = "spans"` and `spans_key` '
        "to learn from one of them."
    )
    S003 = "Component '{name}': option {option} = {value!r} is not possible: {reason}."
    S004 = (
        "The weights of this head cannot be read: {reason}. They must be safetensors written by "
        "spacy-spanner; a file that was changed, cut short or pickled is not loaded."
    )
    S005 = (
        "The stored weights do not fit the configured head: {reason}. Load the pipeline with the "
        "config it was saved with."
    )
    S006 = (
        "The head got token vectors of width {got} but was built for width {expected}. Set the `width` of "
        "a listener to that of its encoder; if the encoder was changed after training, train the component "
        "again."
    )
    S007 = "The head has not been initialized. Call `nlp.initialize()` or load a trained pipeline."
    S008 = (
        "Component '{name}': the architecture of its model block is not one of spacy-spanner's. "
        "Set `[components.{name}.model] @architectures` to `spacy-spanner.<Name>.v1`."
    )
    S195 = (
        "No labels can be added to a trained {name}: it does not say which axis of its parameter "
        "'{parameter}' holds labels. Say it in its `__init__` by `label_axes.mark`, or train again with all "
        "labels."
    )
    S196 = (
        "Component '{name}' listens to a shared encoder, and cannot rehearse: nothing would run that "
        "encoder. Give it a separate encoder with `nlp.replace_listeners`, or train on mixed data instead."
    )
    S270 = (
        "Component '{name}' listens to a shared encoder that has not read the documents. Enable the "
        "encoder's component and put it before this one, in training also into `annotating_components` if "
        "this one is there; or give this one an encoder of its own with `nlp.replace_listeners`."
    )
    S019 = "Schedule {name}: {option} = {value!r} is not possible: {reason}."
    S020 = "{place}: {reason}."
    S021 = "{path}: {reason}. Say which format it is with --format: {formats}."
    S022 = "{first} and {second} would both be written to {target}. Convert them one by one."
    S023 = (
        "{path}: nothing is annotated under spans_key '{key}' in any of the {docs} documents. "
        "Existing keys: {keys}. Name one of them with --spans-key{hint}."
    )
    S024 = "{pred} and {gold} do not hold the same documents: {reason}."
    S025 = (
        "{path} cannot be read as a .spacy file: it is damaged or in another format. Make one with "
        "`spacy spanner convert`."
    )
    S026 = (
        "{path}: no component of this config has a head of spacy-spanner. Its components: {names}."
    )
    S027 = "{path}: no entities (`doc.ents`) in any of the {docs} documents{hint}."
    S028 = "{path}: no documents found."
    S029 = "{path}: {reason}."
    S030 = (
        "No component '{name}' whose thresholds can be tuned. Those of this pipeline: {names}. "
        "Name one of them with --pipe."
    )
    S031 = (
        "A page with plots needs matplotlib, which is not installed: pip install "
        "'spacy-spanner[plots]'. The terminal tables and --json do without it."
    )
    S032 = (
        "This pipeline has no component of spacy-spanner, whose thresholds could be tuned. Its components: "
        "{names}."
    )
    S033 = (
        "There are several components whose thresholds can be tuned: {names}. Name one of them with "
        "--pipe."
    )
    S034 = (
        "{path}: {source} is annotated, but holds no spans in any of the {docs} documents. Take data that "
        "has some{hint}."
    )
    S011 = (
        "Component '{name}': no relations in the training data. Store them with `doc._.relations` and in a "
        "`DocBin(store_user_data=True)`, or make the data with `spacy spanner convert` from a format that "
        "has relations."
    )
    S012 = (
        "Component '{name}' has no entity labels: with `entities = \"given\"` it takes the entities of "
        "another component. Add relation labels with `add_relation_label`."
    )
    S260 = (
        "The tokens of the document {text!r} were changed after its relations were set, so their offsets "
        "do not fit any more. Change tokens (`retokenize`, `merge_entities`, `span.as_doc`) before relations "
        "are found or set."
    )
    S261 = (
        "{found!r:.200} cannot be set as a relation: {reason}. Give Relation(head, tail, label) with spans "
        "of the same document, or the plain form of `Relation.to_dict`."
    )
    S040 = (
        "`spacy-spanner.TunedVectors.v1` was trained beside static vectors of width {expected} (0: none), "
        "but the pipeline has vectors of width {got}. Load the pipeline with the vectors it was trained "
        "with, or train it again."
    )
    S041 = "`spacy-spanner.{name}.v1`: option {option} = {value!r} is not possible: {reason}."
    S050 = "{path}: {reason}. Say with --input-format what it is: {formats}."
    S051 = (
        "{path} holds another run: {what} changed. Choose another output folder, or remove this one to "
        "start over."
    )
    S052 = "{path} holds results without the manifest of their run. Choose another output folder."
    S053 = "{path} cannot be read: {reason}. Choose another output folder."
    S054 = (
        "A worker process died (out of memory?). The shards that are done are in {path}; the same command "
        "resumes from there."
    )
    S055 = "{engine} is not installed: pip install 'spacy-spanner[{extra}]'."
    S056 = (
        "{path} cannot be written: {reason}. All finished shards are complete; the same command "
        "resumes from there."
    )
    S057 = (
        "The ranks do not train the same pipeline: their parameters differ in name or shape. Give all of "
        "them the same config, code and data."
    )
    S058 = (
        "Training stopped after step {step}: another rank was lost ({reason}). {path} holds the weights of "
        "that step; resume from there with --resume."
    )
    S060 = (
        "Rank {rank}: training stopped after step {step}: another rank was lost ({reason}). Rank 0 keeps "
        "checkpoints in {path}; resume from there with --resume."
    )
    S059 = "There is nothing to resume from: {path} does not exist. Train without --resume first."
    S100 = "{path}: {reason}. {hint}"
    S101 = (
        "--tag-names {given}: expected the names of at least two tags, separated by commas or in a file, one "
        "per line or as JSON."
    )
    S102 = "{path}: {reason}. Name the column or the key with --tag-field."
    S104 = "--{option} {value} is not valid. Choose: {choices}."
    S105 = "There is no language '{lang}'. Use a code of spaCy such as en or de, or xx for any language."
    S106 = (
        "{target} already exists, and the inputs are .spacy files too: it would be overwritten. The last "
        "argument is the output; name a folder or a new file."
    )
    S107 = "Encoder '{encoder}' needs {package}, which is not installed: pip install '{extra}'."
    S108 = "--{override}: this config has no {kind} '{name}'{hint}"
    S109 = (
        "There are no documents in the {part} data. Check --paths.{part}, and the settings of "
        "[corpora.{part}], such as max_length."
    )
    S240 = (
        "The encoder takes its word vectors from the pipeline, which has none. Give them with "
        "--paths.vectors, or choose an encoder that learns its own, such as `lstm`."
    )
    S241 = "auto looks at the training data. Name it with --corpus train.spacy, or choose a system."
    S110 = "There is no {kind} '{name}'. Choose: {names}."
    S111 = "{path} already exists. Use --force to overwrite it."
    S113 = "{path} cannot be written: {reason}. Nothing was written; choose another path."
    S112 = "{path} has no gold annotation for component '{name}'."
    S114 = (
        "Component '{name}': the training data has no document with a token in it. Check `paths.train` and "
        "the settings of `[corpora.train]`."
    )
    S140 = '{path} cannot be read: {reason}. One JSON object a line is expected: {{"text": "..."}}.'
    S141 = (
        "{target} would have {n_docs} documents, too few for {folds} folds. Set --folds to at most the "
        "number of documents."
    )
    S062 = (
        "Component '{name}': option {option} = {value!r} is not possible any more: {reason}. Remove the "
        "option from the config; only {only!r}, which is what the model does now, is still accepted."
    )
    S120 = "{path} is in use by another run. Wait until that one ends, or choose another output folder."
    S121 = "Stopped by {signal}. The finished shards are in {path}; the same command resumes from there."
    S122 = (
        "Stopped by {signal} after step {step}{lost}. {path} holds the weights of that step; resume from "
        "there with --resume."
    )
    S123 = (
        "Training cannot resume from {path}: the checkpoint is damaged or belongs to another config "
        "({reason}). Restore an intact copy, or start over: the same command without --resume removes "
        "model-last and model-best and trains from the start."
    )
    S124 = (
        "Component '{name}': its stored settings (cfg) cannot be used: {reason}. Load an unchanged copy of "
        "the pipeline, or train it again."
    )
    S125 = (
        "Component '{name}': its stored model cannot be used: {reason}. Load an unchanged copy of the "
        "pipeline with its own config, or train it again."
    )
    S126 = (
        "There is an empty label: {place}. spaCy writes no entity without a label. Give it a name, or remove "
        "the annotations that use it."
    )
    S127 = (
        "{engine} did not start: {reason}. Check --address and, for Spark, Java 17; the same command "
        "tries again, and resumes what is done."
    )
    S080 = "The transformer '{name}' cannot be loaded: {reason}."
    S081 = (
        "The transformer '{name}' requires custom code (`auto_map` in {file}). spacy-spanner never runs "
        "code of a model. Choose a model that the library transformers supports without it."
    )
    S082 = (
        "The transformer '{name}' has no safetensors weights, only {files}. Pickled weights can run code "
        "when they are read, so they are refused. Take a revision with model.safetensors, or convert them "
        "where you trust them: load the model with transformers and `save_pretrained` it."
    )
    S083 = (
        "The transformer '{name}' has the model type '{kind}', which `spacy-spanner.HuggingFaceEncoder.v1` "
        "does not support. Supported types: {kinds} (encoders, not decoders)."
    )
    S084 = (
        "The transformer '{name}' has vectors of width {got}, the config says {expected}. Set `width` of "
        "`spacy-spanner.HuggingFaceEncoder.v1` and of the listeners to {got}."
    )
    S085 = (
        "The transformer '{name}' has no tokenizer that can be used: {reason}. Its folder needs "
        "tokenizer.json: load its tokenizer with transformers (use_fast=True) and `save_pretrained` it."
    )
    S087 = "This cannot be migrated: {reason}."
    S161 = (
        "A recipe of a paper converts epochs to steps and defines the encoder. Give --corpus with "
        "the training data and leave --encoder out; --transformer takes another pretrained model."
    )
    S162 = (
        "--buckets {text} is not valid. Write paper, quartiles, or an attribute and intervals that hold "
        "every value once, such as length=1-4,5-9,10- or density=0-.1,.1-.3,.3-. Attributes: {names}."
    )
    S163 = "{n} systems are too many to compare with at once. Give --compare up to {most} times."
    S180 = (
        "--only-errors needs gold, and none of the documents read has any. Name a .spacy file of gold "
        "behind {source}, or change --spans-key or --output."
    )
    S181 = "There is no terminal to ask on. Give {option} on the command line."
    S182 = "There is no file {path}. Check the name; an annotated file in any format of `convert` will do."
    S086 = "The library transformers is not installed: pip install 'spacy-spanner[huggingface]'."
    S210 = "{path} could not be measured: {reason}. Check that `spacy.load` loads it and that it annotates."
    S211 = (
        "A transformer with int8 weights (`spacy-spanner.QuantizedEncoder.v1`) cannot be trained or "
        "initialized. Train the pipeline that it was made of, and run `spacy spanner quantize` again."
    )
    S212 = (
        "The transformer of this pipeline has int8 weights, which need onnxruntime. Install it: "
        "pip install 'spacy-spanner[onnx]'."
    )
    S213 = (
        "No component of this pipeline is a transformer by `spacy-spanner.HuggingFaceEncoder.v1` that others "
        "listen to. Its components: {names}. Pipelines of spacy-transformers become such by `spacy spanner "
        "migrate`."
    )
    S250 = (
        "{path} has no spans in {source}, so no config can suit it. Name another annotation with --spans-key "
        "or --output, or leave --corpus out."
    )
    S251 = (
        "{path}: only .spacy and .txt files are read here. Annotated files of other formats become .spacy "
        "files by `spacy spanner convert`."
    )
    S252 = (
        "{path}: the training data has nothing in `{source}`, which is compared. Take training data that is "
        "annotated alike, or choose what is compared with --output and --spans-key."
    )
    S253 = (
        "{system} learns from {source}, where {path} has nothing, and no setting changes that. Choose "
        "another system for {other}, or make a file that has both with `spacy spanner convert`."
    )
    S254 = (
        "{path} has no relations, which {system} learns. Set `doc._.relations` and store documents in a "
        "`DocBin(store_user_data=True)`, convert a format that has relations, or choose another system."
    )
    S255 = "--{option} changes nothing here: {reason}. Leave it out{instead}."
    S256 = "auto has no paper whose settings --recipe could take. Name the system or the baseline: {names}."


class Warnings(metaclass=WithCodes):
    SW01 = (
        "Component '{name}': {lost} of {total} gold spans cannot be learned: {reasons}. Joined "
        "examples (`spacy-spanner.JoinedCorpus.v1`) are counted beside the single ones."
    )
    SW02 = (
        "Component '{name}': `training.score_weights` asks for '{key}', which no component of this "
        "pipeline can fill (this one writes {writes}), so it always counts as 0. Rename it or set it to null."
    )
    SW03 = (
        "Component '{name}': {lost} of {total} gold relations cannot be learned: {reasons}. Joined "
        "examples (`spacy-spanner.JoinedCorpus.v1`) are counted beside the single ones."
    )
    SW04 = (
        "Component '{name}' links the entities that another component wrote to {source}, but no document "
        "has any annotation there. Put that component before this one, or change `output` or `spans_key`."
    )
    SW23 = (
        "None of the {n} documents has gold relations, so relations have no score (0 in training). Set "
        "`doc._.relations`, [] for none, and store documents in a `DocBin(store_user_data=True)`."
    )
    SW24 = (
        "Component '{name}': `symmetric` names {labels}, which no relation in the training data has. The "
        "labels are {known}; correct the setting."
    )
    SW25 = (
        "Component '{name}': {lost} of {total} gold relations have an end with another label than the gold "
        "entity of the same tokens. Strict scores and `seen_pairs` compare these labels. Make relations with "
        "the spans of the entities, which have labels: `doc[0:2]` has none."
    )
    SW05 = (
        "The extension `{name}` is already taken, so it does not show what spacy-spanner writes. "
        "Call `{module}.{function}` instead."
    )
    SW06 = (
        "Component '{name}' was trained by an earlier version, which did not store how wide gold spans and "
        "how long rows were. It looks for spans of up to {width} tokens. Train it again, or set "
        "`width_factor`."
    )
    SW07 = (
        "'{name}' wrote nothing to `{source}`, which is compared with gold, so it finds nothing. Choose "
        "what is compared with --output and --spans-key."
    )
    SW26 = (
        "Component '{name}' overwrites the spans that '{other}' writes to `doc.spans[{key!r}]`. Give one of "
        "them another `spans_key` or `ents_key`."
    )
    SW28 = (
        "{path}: read as conll, the tokens in column {column} are 1, 2, 3, ... in each sentence looked at "
        "({n}). If these only count the lines, name the column of the words with --token-column (the first "
        "is 0), or the format with --format: germeval, conllu."
    )
    SW10 = (
        "`spacy-spanner.TagEmbed.v1`: no token has `{attr}`, so every token gets the same vector. Put a "
        "component that sets it (such as a tagger) before this one and, for training, name it in "
        "`[training] annotating_components`; or take the block out."
    )
    SW20 = (
        "Component '{name}': `{corpus}` has no gold for it, so its scores are 0 and no threshold is fitted. "
        "Check the path, and that this part is annotated where the component learns from."
    )
    SW21 = (
        "{path} has no spans under spans_key '{key}', so `doc.ents` are learned. It also has the span groups "
        "{keys}, which may hold nested spans. To learn one of them, name it with --spans-key."
    )
    SW22 = (
        "The pipeline writes nothing to {sources}, so no entities were taken from there. Change --source: "
        "ents, or keys of its span groups."
    )
    SW27 = (
        "There is no pipeline '{vectors}' here, neither a package nor a folder. Training with this config "
        "needs it: correct --vectors, or install it where you train."
    )


def check(name: str, options: Mapping[str, Any], rules: Iterable[Rule]) -> None:
    """Refuse the first option that breaks its rule.

    name: The component or architecture, for the message.
    options: Their values.
    """
    for option, holds, reason in rules:
        if not holds:
            value = options[option]
            raise ValueError(
                Errors.S003.format(name=name, option=option, value=value, reason=reason)
            )
