"""Architectures made from modules: an option is declared once, in the module's `__init__`.

The function that is registered has the options, types and defaults of the module, so spaCy fills
in the defaults of a config block and refuses wrong names and types before anything is built.
"""

from __future__ import annotations

from functools import partial
from inspect import Parameter, Signature, cleandoc, signature
from typing import Any, Callable, Dict, List, Optional, Tuple, Type, get_type_hints

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from ..batch import SIZES
from ..bridge import span_table_model
from ..contract import SpanModule
from ..dropout import RATE, is_rate
from ..errors import Errors, Rule, check

TOK2VEC = Parameter(
    "tok2vec",
    Parameter.POSITIONAL_OR_KEYWORD,
    default=None,
    annotation=Optional[Model[List[Doc], List[Floats2d]]],
)
SHARED_DOC = """
tok2vec: Token vectors; null for a part of another architecture, such as a bundle.
learn_rate_scale: Factor on the learning rate of the head alone; about 20 over a transformer.
"""


def architecture(
    module: Type[SpanModule],
    *,
    build: Callable[..., Model] = span_table_model,
    fixed: Optional[Dict[str, Any]] = None,
    removed: Optional[Dict[str, Tuple[Any, str]]] = None,
) -> Callable[..., Model]:
    """The function to register for a module.

    build: Makes the thinc model around the module.
    fixed: Options of the module that this architecture decides.
    removed: Options of earlier versions: the only value still accepted, so that saved pipelines
        load, and what became of the others.
    """
    fixed, removed = fixed or {}, removed or {}
    declared = option_parameters(module, without=fixed)
    gone = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=value, annotation=Any)
        for name, (value, _) in removed.items()
    ]
    scale = Parameter("learn_rate_scale", Parameter.KEYWORD_ONLY, default=1.0, annotation=float)
    parameters = Signature([TOK2VEC, *declared, *gone, scale], return_annotation=Model)

    def make(*args: Any, **kwargs: Any) -> Model:
        bound = parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        options = {**bound.arguments, **fixed}
        tok2vec, learn_rate_scale = options.pop("tok2vec"), options.pop("learn_rate_scale")
        for name, (only, reason) in removed.items():
            value = options.pop(name)
            if value != only:
                values = {"option": name, "value": value, "only": only, "reason": reason}
                raise ValueError(Errors.S062.format(name=module.__name__, **values))
        check(module.__name__, options, dropout_rules(options))
        facts = module.facts(options)
        maker = partial(module, **options)
        return build(tok2vec, maker, facts=facts, learn_rate_scale=learn_rate_scale)

    hints = {p.name: p.annotation for p in parameters.parameters.values()}
    make.__annotations__ = {**hints, "return": Model}
    make.__name__ = make.__qualname__ = f"build_{module.__name__}"
    make.__module__ = module.__module__
    texts = (module.__doc__, module.__init__.__doc__, SHARED_DOC)
    make.__doc__ = "\n\n".join(cleandoc(text) for text in texts if text)
    vars(make).update(__signature__=parameters, module=module, removed=removed)
    return make


def option_parameters(module: Type[SpanModule], *, without: Dict[str, Any]) -> List[Parameter]:
    """The parameters of a module's `__init__` that are options, with types instead of their names."""
    hints = get_type_hints(module.__init__)
    return [
        parameter.replace(annotation=hints[name])
        for name, parameter in signature(module.__init__).parameters.items()
        if name not in ("self", *SIZES) and name not in without  # sizes are known later
    ]


def dropout_rules(options: Dict[str, Any]) -> List[Rule]:
    """Rules of the rates of dropout among the options of any module."""
    return [(name, is_rate(options[name]), RATE) for name in options if name.endswith("dropout")]
