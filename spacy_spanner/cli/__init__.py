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
OVERRIDES = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
}  # as `spacy train` takes them
spanner.command("quickstart")(command(quickstart_cli))
spanner.command("config")(command(config_cli))
spanner.command("migrate")(command(migrate_cli))
spanner.command("convert")(command(convert_cli))
spanner.command("check")(command(check_cli))
spanner.command("render")(command(render_cli))
spanner.command("annotate")(command(annotate_cli))
spanner.command("benchmark")(command(benchmark_cli))
spanner.command("quantize")(command(quantize_cli))
spanner.command("serve")(command(serve_cli))
spanner.command("analyze")(command(analyze_cli))
spanner.command("thresholds")(command(thresholds_cli))
spanner.command("train", context_settings=OVERRIDES)(command(train_cli))

spacy_app.add_typer(spanner)
