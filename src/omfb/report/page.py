"""The page of a report, self-contained, and the pieces of HTML it is made of."""

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from .drawing import INK, inline_svg, legend_entries
from .outcome import Claim, Outcome, as_json

CLAIMS = """<section id="claims">
<h2>Which claims were confirmed</h2>
<table class="claims">
<thead><tr><th scope="col">claim</th><th scope="col">expected</th><th scope="col">measured</th>\
<th scope="col">verdict</th></tr></thead>
<tbody>{}</tbody>
</table>
</section>"""
NUMBERS = (
    "<p>Every number is in <code>results.csv</code> and <code>results.json</code> beside this "
    "page.</p>"
)


@dataclass(frozen=True)
class Part:
    """What an experiment adds to a report.

    Attributes
    ----------
    outcome : Outcome
    section : str
        Its section of the page, as HTML.
    cards : list of (str, str)
        The main numbers, and what they are.
    hero : str
        What is shown above all sections, as HTML.
    figures : dict of Figure
        By the name of their files.
    """

    outcome: Outcome
    section: str
    cards: list[tuple[str, str]]
    hero: str = ""
    figures: dict[str, Any] = field(default_factory=dict)


def page(
    heading: str,
    subtitle: str,
    parts: list[Part],
    environment: Mapping[str, Any],
    notices: Iterable[str] = (),
) -> str:
    """The report as HTML.

    Parameters
    ----------
    heading : str
    subtitle : str
        What was run, as HTML.
    parts : list of Part
    environment : dict
        Versions and hardware.
    notices : list of str
        What a reader must know first.

    Returns
    -------
    html : str
    """
    claims = [claim for part in parts for claim in part.outcome.claims]
    cards = "".join(
        f"<li><strong>{escape(number)}</strong> {escape(words)}</li>"
        for part in parts
        for number, words in part.cards
    )
    settings = "".join(_settings(part.outcome) for part in parts)
    return page_of(
        heading=heading,
        subtitle=subtitle,
        notices="".join(map(notice, notices)),
        hero="".join(part.hero for part in parts),
        cards=f'<ul class="cards">{cards}</ul>',
        claims=CLAIMS.format("".join(map(_claim, claims))),
        sections="".join(part.section for part in parts),
        numbers=NUMBERS,
        settings=f"<details><summary>Every setting</summary>\n{settings}\n</details>",
        environment=environment,
    )


def page_of(
    *,
    heading: str,
    subtitle: str,
    sections: str,
    environment: Mapping[str, Any],
    notices: str = "",
    hero: str = "",
    cards: str = "",
    claims: str = "",
    numbers: str = "",
    settings: str = "",
) -> str:
    """The page of its pieces, which are HTML except for the heading and the environment."""
    template = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    return template.substitute(
        heading=escape(heading),
        subtitle=subtitle,
        notices=notices,
        hero=hero,
        cards=cards,
        claims=claims,
        experiments=sections,
        numbers=numbers,
        settings=settings,
        environment=_facts(environment),
    )


def notice(words: str) -> str:
    """What a reader must know before reading on."""
    return f'<p class="notice" role="note">{escape(words)}</p>'


def chart(figure: Any, name: str, alternative: str) -> str:
    """A figure in the colours of the page; its legend is text, which wraps where it is narrow."""
    svg = inline_svg(figure, salt=name)
    label = escape(alternative, quote=True)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    entries = "".join(
        f'<li><span style="border-top: {border} {colour}"></span>{escape(words)}</li>'
        for words, colour, border in legend_entries(figure)
    )
    entries = entries.replace(INK, "currentColor")
    legend = f'<figcaption><ul class="legend">{entries}</ul></figcaption>' if entries else ""
    return f'<figure><div class="chart" tabindex="0">{svg}</div>{legend}</figure>'


def image(png: bytes, alternative: str) -> str:
    """A picture, described in words."""
    data = base64.b64encode(png).decode("ascii")
    return f'<img src="data:image/png;base64,{data}" alt="{escape(alternative, quote=True)}">'


def captioned(png: bytes, caption: str, alternative: str) -> str:
    """A picture below its caption."""
    return f"<figure><figcaption>{escape(caption)}</figcaption>{image(png, alternative)}</figure>"


def table(rows: list[dict[str, str]]) -> str:
    """A row for each dict; its keys are the columns."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(row.get(column, '–'))}</td>" for column in columns) + "</tr>"
        for row in rows
    )
    whole = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0">{whole}</div>'


def _claim(claim: Claim) -> str:
    mark, verdict = ("yes", "confirmed") if claim.confirmed else ("no", "not confirmed")
    return (
        f"<tr><td>{escape(claim.text)}</td><td>{escape(claim.expected)}</td>"
        f"<td>{escape(claim.measured)}</td>"
        f'<td><span class="mark {mark}">{verdict}</span></td></tr>'
    )


def _settings(outcome: Outcome) -> str:
    text = json.dumps(as_json(outcome.settings), indent=1, ensure_ascii=False)
    return f"<h3>{escape(outcome.experiment)}</h3><pre tabindex='0'>{escape(text)}</pre>"


def _facts(facts: Mapping[str, Any]) -> str:
    return "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(_words(fact))}</dd>" for name, fact in facts.items()
    )


def _words(fact: Any) -> str:
    if isinstance(fact, dict):
        return ", ".join(f"{name} {value}" for name, value in fact.items())
    return str(fact)
