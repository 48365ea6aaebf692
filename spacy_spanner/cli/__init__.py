"""`python -m spacy spanner ...`: spaCy loads this module by entry point and finds the commands.

Command modules import what they need when they run, so that `--help` stays fast.
"""

import typer
from spacy.cli._util import app as spacy_app

from .analyze import analyze_cli
from .annotate import annotate_cli
from .benchmark import benchmark_cli
from .check import check_cli
from .command import command
from .config import config_cli
from .convert import convert_cli
from .migrate import migrate_cli
from .quantize import quantize_cli
from .quickstart import quickstart_cli
from .render import render_cli
from .serve import serve_cli
from .thresholds import thresholds_cli
from .train import train_cli

HELP = (
    "Nested and flat entities with spacy-spanner: convert data, check it, train, analyze results."
)

spanner = typer.Typer(name="spanner", help=HELP, no_args_is_help=True, rich_markup_mode=None)
COMMANDS = (  # in the order of the help
    *(quickstart_cli, config_cli, migrate_cli, convert_cli, check_cli, render_cli, annotate_cli),
    *(benchmark_cli, quantize_cli, serve_cli, analyze_cli, thresholds_cli, train_cli),
)
# `train` takes settings of the config as options, as `spacy train` does.
OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}
for function in COMMANDS:
    settings = OVERRIDES if function is train_cli else {}
    name = function.__name__.removesuffix("_cli")
    spanner.command(name, context_settings=settings)(command(function))

spacy_app.add_typer(spanner)
