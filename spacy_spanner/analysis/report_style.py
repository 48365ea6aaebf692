"""The HTML and CSS of the report page."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --page: #f6f7f9; --paper: #ffffff; --ink: #1d2430;
  --soft: #5d6679; --rule: #e0e4ea; --one: #2563c9; --two: #d9730d; --better: #35b27c;
  --worse: #e4576f; --mark: #ffe3a3; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171d; --paper: #1c2129; --ink: #e4e8ef; --soft: #a3adbd; --rule: #323a47;
    --one: #6ea8ff; --two: #f5a04c; --better: #1f8f62; --worse: #b23a55; --mark: #6b4f12; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 0; }
.note { color: var(--soft); margin: .1rem 0 .7rem; font-size: .88rem; overflow-wrap: anywhere; }
.cards { display: flex; flex-wrap: wrap; gap: .6rem; margin: 1rem 0; }
.card, section, details { background: var(--paper); border: 1px solid var(--rule);
  border-radius: 8px; padding: .9rem 1.1rem; }
.card { border-top: 3px solid var(--soft); padding: .5rem .9rem; flex: 1 1 10rem; }
.card.one { border-top-color: var(--one); } .card.two { border-top-color: var(--two); }
.card b { display: block; font-size: 1.5rem; font-variant-numeric: tabular-nums; }
.card span { color: var(--soft); font-size: .8rem; display: block; line-height: 1.3; }
section, details { margin-bottom: 1rem; }
.cards, .legend, .pair { margin-bottom: 1rem; }
.legend { position: sticky; top: 0; z-index: 2; background: var(--page); display: flex;
  flex-wrap: wrap; gap: .3rem 1.4rem; padding: .5rem 0; border-bottom: 1px solid var(--rule); }
.key { display: inline-flex; align-items: center; gap: .45rem; }
.key i { width: .9rem; height: .9rem; border-radius: 3px; }
i.one { background: var(--one); } i.two { background: var(--two); }
th.one { color: var(--one) !important; } th.two { color: var(--two) !important; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); gap: 1rem; }
.pair section { margin: 0; }
.wide { overflow-x: auto; }
.plot { min-width: 20rem; } .plot.large { min-width: 54rem; }
.plot svg { width: 100%; height: auto; display: block; }
svg text { font-family: inherit !important; }
table { border-collapse: collapse; width: 100%; font-size: .88rem;
  font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .25rem .6rem; border-top: 1px solid var(--rule); }
tr th:first-child { text-align: left; font-weight: 500; }
thead th { border: 0; color: var(--soft); font-weight: 600; }
.heat { border-collapse: separate; border-spacing: 3px; }
.heat th, .heat td { border: 0; }
.heat td { text-align: center; border-radius: 5px; line-height: 1.25; width: 19%; }
.heat.small td { width: auto; padding: .2rem .4rem; } .heat.small thead th { text-align: center; }
.heat small { display: block; color: var(--soft); font-size: .74rem; white-space: nowrap; }
.better small, .worse small { color: var(--ink); opacity: .8; }
.better { background: color-mix(in srgb, var(--better) var(--a), var(--page)); }
.worse { background: color-mix(in srgb, var(--worse) var(--a), var(--page)); }
.few { opacity: .65; }
.none { color: var(--soft); background: var(--page); }
summary { cursor: pointer; font-weight: 600; }
ol { margin: 0; padding-left: 1.8rem; } li { padding: .3rem 0; } li p { margin: 0; }
.why { color: var(--soft); font-size: .85rem; } .why b { color: var(--ink); }
mark { background: var(--mark); color: inherit; border-radius: 3px; padding: 0 .15em; }
@media print { .legend { position: static; } section { break-inside: avoid; } }
"""

PAGE = (
    """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>"""
    + STYLE.replace("{", "{{").replace("}", "}}")
    + """</style></head>
<body><main>
<h1>{title}</h1><p class="note">{note}</p>
<div class="cards">{cards}</div>
<nav class="legend">{legend}</nav>
{sections}
</main></body></html>
"""
)
