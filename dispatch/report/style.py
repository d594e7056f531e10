"""How a report's page looks: light and dark, from a telephone to a wide screen.  No script."""

from __future__ import annotations

# Colours are told apart by the eyes of most people, and by three to one from the ground.
STYLE = """
:root{color-scheme:light dark;--ground:#f6f7f9;--card:#fff;--ink:#16202c;--soft:#566373;
--line:#dfe4ea;--accent:#0b6b63;--plain:#4a7fb5;--surfaced:#0f7f76;--started:#48a096;
--waiting:#5b8fd6;--held:#d27a00;--doubt:#8b5cf6;--dead:#d03b3b;--refused:#8a94a1;
--warn:#fff4e0;--warn-ink:#7a4300}
@media (prefers-color-scheme:dark){:root{--ground:#0e1319;--card:#161d26;--ink:#e8edf3;
--soft:#9daab9;--line:#2a3441;--accent:#4fd1c5;--plain:#6fa3da;--surfaced:#2fb8aa;
--started:#23857c;--waiting:#6b9fe8;--held:#f0a030;--doubt:#a98bfa;--dead:#f06a6a;
--refused:#6d7887;--warn:#33240c;--warn-ink:#ffd08a}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);line-height:1.5;
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main,header,footer{max-width:1120px;margin:0 auto;padding:0 24px}
header{padding-top:40px;padding-bottom:8px}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 4px;letter-spacing:-.01em}
h2{font-size:1.0625rem;line-height:1.3;margin:0 0 4px}
p{margin:0}.soft{color:var(--soft);font-size:.875rem}
.tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:16px;margin:24px 0 16px;padding:0;
list-style:none}
.tile,section{background:var(--card);border:1px solid var(--line);border-radius:12px}
.tile{padding:16px 20px}.tile b{display:block;font-size:1.875rem;line-height:1.2;font-weight:650;
letter-spacing:-.02em;font-variant-numeric:tabular-nums}
.tile span{display:block;font-size:.875rem;color:var(--soft)}
.tile.ask{background:var(--warn);border-color:transparent}
.tile.ask b,.tile.ask span,.tile a{color:var(--warn-ink)}
section{padding:20px 24px 24px;margin:0 0 16px;min-width:0}
section>.soft{margin-bottom:16px}
.two{display:grid;grid-template-columns:1fr 1fr;gap:0 16px;align-items:stretch}
svg{display:block;width:100%}
.days{display:grid;grid-template-columns:auto 1fr;gap:6px 10px}
.days svg{height:200px;overflow:visible}.scale{display:flex;flex-direction:column;
justify-content:space-between;text-align:right;font-size:.75rem;line-height:1;color:var(--soft);
font-variant-numeric:tabular-nums;margin:-6px 0}
.dates{grid-column:2;display:flex;justify-content:space-between;font-size:.75rem;
color:var(--soft)}
.grid{stroke:var(--line);stroke-width:1;vector-effect:non-scaling-stroke}
.cover{fill:transparent}g:hover .cover{fill:var(--ink);fill-opacity:.07}
.share{height:14px;border-radius:7px;background:var(--line)}.length{height:10px;
background:var(--line);border-radius:5px}
.big{margin:24px 0 16px}.big .share{height:22px;border-radius:8px}
.key{list-style:none;margin:0;padding:0;display:grid;gap:6px 24px;
grid-template-columns:repeat(auto-fit,minmax(270px,1fr))}
.key li{display:grid;grid-template-columns:14px 1fr auto;gap:0 10px;align-items:baseline}
.key svg{width:12px;height:12px;align-self:center}
.key b{font-weight:600}.key small{display:block;color:var(--soft);font-size:.8125rem}
.key .n{text-align:right;font-variant-numeric:tabular-nums}
table{width:100%;border-collapse:collapse;font-size:.9375rem}
th{text-align:left;font-weight:600;vertical-align:top}
thead th{font-size:.8125rem;color:var(--soft);font-weight:500;padding:0 12px 6px 0}
tbody th,tbody td{padding:8px 12px 8px 0;border-top:1px solid var(--line);vertical-align:top}
tbody th{font-weight:500;overflow-wrap:anywhere}
td{overflow-wrap:anywhere}
tr>:last-child{padding-right:0}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.rows thead th:first-child{width:20%}
.rows .mid{vertical-align:middle;width:34%}
.bars th{white-space:nowrap;overflow-wrap:normal;width:1%}.bars td{vertical-align:middle}
.bars tbody th,.bars tbody td{border:0;padding-top:4px;padding-bottom:4px}
code{font:.8125rem/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
overflow-wrap:anywhere}
.dot{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:7px}
.dot svg{width:10px;height:10px;border-radius:3px}
.name{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow:hidden}
.more{margin-top:12px}
details{margin-top:16px}summary{cursor:pointer;color:var(--accent);font-size:.875rem}
summary:focus-visible,a:focus-visible{outline:2px solid var(--accent);
outline-offset:3px;border-radius:3px}
details div{overflow-x:auto;margin-top:8px}
.empty{margin-top:24px;padding:56px 24px;text-align:center}
.empty h2{font-size:1.25rem;margin-bottom:8px}
footer{padding-top:8px;padding-bottom:48px;color:var(--soft);font-size:.8125rem}
footer p+p{margin-top:6px}
.f-plain{fill:var(--plain)}.f-surfaced{fill:var(--surfaced)}.f-started{fill:var(--started)}
.f-waiting{fill:var(--waiting)}.f-held{fill:var(--held)}.f-doubt{fill:var(--doubt)}
.f-dead{fill:var(--dead)}.f-refused{fill:var(--refused)}
@media (max-width:860px){.tiles{grid-template-columns:1fr 1fr}.two{grid-template-columns:1fr}}
@media (max-width:640px){main,header,footer{padding-left:14px;padding-right:14px}
header{padding-top:24px}.tiles{gap:10px;margin:16px 0 10px}.tile{padding:12px 14px}
.tile b{font-size:1.5rem}section{padding:16px 14px 18px;margin-bottom:10px}
.days svg{height:160px}.dates span:nth-child(2){display:none}
.rows thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.rows tr{display:flex;flex-wrap:wrap;gap:6px 24px;padding:12px 0;
border-top:1px solid var(--line)}
.rows tbody th,.rows tbody td{border:0;padding:0;text-align:left;width:auto}
.rows tbody th,.rows .mid,.rows .wide{flex:0 0 100%}.rows td.mid[data-is]::before{display:none}
.rows td[data-is]::before{content:attr(data-is);display:block;font-size:.75rem;
color:var(--soft)}}
@media print{body{background:#fff}section,.tile{break-inside:avoid}}
"""
