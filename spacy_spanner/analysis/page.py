"""The HTML and CSS of the page: no scripts, nothing loaded from elsewhere, light and dark."""

from __future__ import annotations

# displaCy fills these in. `bg` holds classes; `.strut` makes the line high enough for the lowest
# label, `.room` the token wide enough for its own.
SLICE_TEMPLATES = {
    "span": '<span class="token">{text}{span_slices}{span_starts}</span>',
    "slice": '<i class="strut" style="height:{top_offset}px"></i>'
    '<i class="slice {bg}" style="top:{top_offset}px"></i>',
    "start": '<span class="room">{label}</span>'
    '<span class="start {bg}" style="top:{top_offset}px">{label}{kb_link}</span>',
}

STYLE = """
:root { color-scheme: light dark; --page: #f6f7f9; --paper: #ffffff; --ink: #1d2430; 
  --soft: #667085; --rule: #e3e6ec; --hit: #0b8f6a; --hit-ink: #ffffff; --miss: #a85b00; --miss-ink:
  #8a4b00; --alarm: #cc2f58; --alarm-ink: #ffffff; --sat: 62%; --light: 36%; --plain-ink: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171d; --paper: #1c2129; --ink: #e4e8ef; --soft: #98a2b3; --rule: #2e3541;
    --hit: #35c99b; --hit-ink: #06241a; --miss: #f0a73c; --miss-ink: #f5bd69; --alarm: #ff7a9a;
    --alarm-ink: #33060f; --sat: 65%; --light: 68%; --plain-ink: #10141a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.5rem; margin: 0; }
.note { color: var(--soft); margin: .25rem 0 1.25rem; overflow-wrap: anywhere; }
.cards { display: flex; flex-wrap: wrap; gap: .6rem; margin-bottom: 1rem; }
.card { background: var(--paper); border: 1px solid var(--rule); border-top: 3px solid var(--soft);
  border-radius: 8px; padding: .5rem .9rem; flex: 1 1 6rem; }
.card b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.card span { color: var(--soft); font-size: .8rem; white-space: nowrap; }
.card.hit { border-top-color: var(--hit); } .card.miss { border-top-color: var(--miss); }
.card.alarm { border-top-color: var(--alarm); }
details { background: var(--paper); border: 1px solid var(--rule); border-radius: 8px;
  padding: .5rem .9rem; margin-bottom: 1rem; overflow-x: auto; }
summary { cursor: pointer; color: var(--soft); }
table { border-collapse: collapse; width: 100%; margin-top: .5rem; font-size: .9rem;
  font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .25rem .6rem; border-top: 1px solid var(--rule); }
th:first-child { text-align: left; } thead th { border: 0; color: var(--soft); font-weight: 500; }
.legend { position: sticky; top: 0; z-index: 20; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem;
  background: var(--page); border-bottom: 1px solid var(--rule); padding: .6rem 0;
  margin-bottom: 1rem; font-size: .85rem; }
.key { display: inline-flex; align-items: center; gap: .4rem; }
.key i { width: 1.6rem; height: 5px; border-radius: 3px; }
label.key { margin-left: auto; cursor: pointer; }
.doc { background: var(--paper); border: 1px solid var(--rule); border-radius: 8px;
  padding: .75rem 1.1rem 1rem; margin-bottom: .8rem; }
.doc header { display: flex; flex-wrap: wrap; gap: .6rem; align-items: baseline; font-size: .8rem;
  color: var(--soft); margin-bottom: .3rem; }
.doc .name { flex: 1; overflow-wrap: anywhere; }
.count.hit { color: var(--hit); background: none; } .count.alarm { color: var(--alarm);
  background: none; } .count.miss { color: var(--miss-ink); background: none; }
body:has(#errors:checked) .doc.clean { display: none; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.8; font-size: 1.05rem; }
.spans { display: inline; line-height: inherit !important; }
.token { position: relative; display: inline-block; vertical-align: top; white-space: pre;
  font-weight: 550; padding-bottom: 20px; }
.strut { display: inline-block; width: 0; vertical-align: top; }
.room { display: block; height: 0; overflow: hidden; visibility: hidden; padding: 0 6px;
  font: 600 .68rem/1 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
.slice { position: absolute; left: 0; width: 100%; height: 5px; }
.start { position: absolute; left: 0; z-index: 2; padding: 3px 5px; margin-top: -2px;
  border-radius: 4px; white-space: nowrap; font: 600 .68rem/1 system-ui, -apple-system, "Segoe UI",
  Roboto, sans-serif; }
.plain { background: hsl(var(--h) var(--sat) var(--light)); color: var(--plain-ink); }
.hit { background: var(--hit); color: var(--hit-ink); }
.alarm { background: var(--alarm); color: var(--alarm-ink); }
.slice.alarm, .key .alarm { background: repeating-linear-gradient(115deg, var(--alarm) 0 4px,
  transparent 4px 7px); }
.slice.miss, .key .miss { background: repeating-linear-gradient(90deg, var(--miss) 0 7px,
  transparent 7px 12px); height: 3px; margin-top: 1px; }
.start.miss { background: var(--paper); color: var(--miss-ink);
  box-shadow: inset 0 0 0 1.5px var(--miss); }
.card.hit, .card.miss, .card.alarm { background: var(--paper); color: var(--ink); }
.relations { margin: .4rem 0 0; padding: .5rem 0 0; border-top: 1px solid var(--rule); list-style: none;
  font-size: .9rem; }
.relations em { color: var(--soft); font-style: normal; } .relations .plain { background: none;
  color: var(--ink); }
@media print { .legend { position: static; } .doc { break-inside: avoid; } }
"""

PAGE = (
    """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>"""
    + STYLE.replace("{", "{{").replace("}", "}}")
    + """{hues}</style></head>
<body><main>
<h1>{title}</h1><p class="note">{note}</p>
<section class="cards">{cards}</section>
<details><summary>By label</summary>{table}</details>
<nav class="legend">{legend}</nav>
{docs}
</main></body></html>
"""
)
