"""Answers to questions."""

from __future__ import annotations

import base64
import copy
import datetime
import html
import io
import json
import os
import pathlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from specdec import _core
from specdec._errors import QuestionError

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure
    import pandas

#: The arrays of an answer, the main one first, with what their rows take from the objects around them.
Tables = dict[str, tuple[str, tuple[str, ...]]]
#: Each figure by its name, as `specdec plot NAME --format json` prints it and as it stands on a page, compressed: a map has
#: thousands of rows.
Figures = dict[str, tuple[bytes, bytes]]
Self = TypeVar("Self", bound="Answer")

#: Stands on a page where a drawing is to be.
_DRAWING = "<!-- drawing -->"


class Record(Mapping[str, Any]):
    """An object of an answer: its keys are attributes, too."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getitem__(self, key: str) -> Any:
        return _seen(self._values[key])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"there is no {name}; there are {', '.join(self._values)}")
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        return f"Record({', '.join(f'{key}={value!r}' for key, value in self.items())})"

    def __reduce__(self) -> tuple[Callable[..., Record], tuple[Mapping[str, Any]]]:
        return Record, (self._values,)


def _seen(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    return [_seen(one) for one in value] if isinstance(value, list) else value


class Answer:
    """An answer: what `specdec ... --format json` prints, as attributes.

    ``str()`` is the text that the command line prints.
    """

    _tables: Tables = {}
    #: What a page is of, where the answer does not say it.
    _subject = ""

    def __init__(
        self,
        document: dict[str, Any],
        text: str,
        config: str | None = None,
        charts: Figures | Callable[[str], list[tuple[str, str, str]]] | None = None,
        about: dict[str, Any] | None = None,
    ) -> None:
        self._document = document
        self._text = text
        self._config = config
        # Made when they are first asked for.
        self._charts = charts
        # The beginning of a page.
        self._about = about or {}

    @classmethod
    def _shown(cls: type[Self], document: dict[str, Any], answer: _core.Answer) -> Self:
        return cls(document, answer.text, answer.config, answer.figures, json.loads(answer.about))

    def __reduce__(
        self: Self,
    ) -> tuple[Callable[..., Self], tuple[dict[str, Any], str, str | None, Figures, dict[str, Any]]]:
        return type(self), (self._document, self._text, self._config, self._figures(), self._about)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Answer) and self._document == other._document

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._document:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        return _seen(self._document[name])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._document]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {' '.join(self.summary.split())}>"

    @property
    def summary(self) -> str:
        """The lines of the decision: what to do, and how sure it is."""
        return "\n".join(line for line in self._document["decision"]["text"] if line)

    def to_dict(self) -> dict[str, Any]:
        """All of it, as `specdec ... --format json` prints it; docs/schema says what its keys are."""
        return copy.deepcopy(self._document)

    def rows(self, table: str | None = None) -> list[dict[str, Any]]:
        """The rows of a table, as `--format csv` prints them: nested objects as ``outer_inner``, intervals as ``_low`` and
        ``_high``.

        Parameters
        ----------
        table : str, optional
            One of :attr:`tables`; the first one where it is not given.
        """
        names = self.tables
        name = names[0] if table is None else table
        if name not in names:
            raise ValueError(f"table is {name}, but must be one of {', '.join(names)}")
        path, keys = self._tables[name]
        outer, *inner = path.split("/*/")
        found: Any = self._document
        for key in outer.split("/"):
            found = found[key]
        if not inner:
            tables_within = {p.split("/*/")[1] for p, _ in self._tables.values() if p.startswith(f"{outer}/*/")}
            rows = [{k: v for k, v in row.items() if k not in tables_within} for row in found or []]
        else:
            rows = [{**{key: one[key] for key in keys}, **row} for one in found or [] for row in one[inner[0]]]
        shape: dict[str, Any] = {}
        for row in [*rows, self._about.get("columns", {}).get(name, {})]:
            _add_to_shape(row, shape)
        return [_flat(row, shape) for row in rows]

    @property
    def tables(self) -> list[str]:
        """Names of the tables for :meth:`rows` and :meth:`to_dataframe`, the main one first."""
        return list(self._tables)

    def to_dataframe(self, table: str | None = None) -> pandas.DataFrame:
        """:meth:`rows` as a data frame; needs pandas.

        Parameters
        ----------
        table : str, optional
            One of :attr:`tables`; the first one where it is not given.
        """
        import pandas

        return pandas.DataFrame(self.rows(table))

    def _figures(self) -> Figures:
        if not isinstance(self._charts, dict):
            made = self._charts(_DRAWING) if self._charts else []
            self._charts = {
                name: (zlib.compress(chart.encode()), zlib.compress(element.encode())) for name, chart, element in made
            }
        return self._charts

    @property
    def figures(self) -> list[str]:
        """Names of the figures for :meth:`plot`, the main one first: those of `specdec plot`."""
        return list(self._figures())

    def figure_data(self, figure: str | None = None) -> dict[str, Any]:
        """A figure as data: "figure" and "data" of what `specdec plot NAME --format json` prints.

        Parameters
        ----------
        figure : str, optional
            One of :attr:`figures`; the first one where it is not given.
        """
        made = self._figures()
        if not made:
            raise ValueError("figure is asked for, but this answer has none")
        chosen = next(iter(made)) if figure is None else figure
        if chosen not in made:
            raise ValueError(f"figure is {chosen}, but must be one of {', '.join(made)}")
        chart: dict[str, Any] = json.loads(zlib.decompress(made[chosen][0]))
        return chart

    def plot(self, figure: str | None = None, *, ax: matplotlib.axes.Axes | None = None) -> matplotlib.figure.Figure:
        """Draws a figure as `specdec plot` does; needs matplotlib.

        Parameters
        ----------
        figure : str, optional
            One of :attr:`figures`; the first one where it is not given.
        ax : matplotlib.axes.Axes, optional
            Draw into these axes, without the caption; a figure of one panel.

        Returns
        -------
        matplotlib.figure.Figure
            That of `ax` where it is given; else one that pyplot does not know: a notebook shows it, ``savefig`` writes it.

        Raises
        ------
        ValueError
            Where there is no such figure, or it has several panels and `ax` is given.
        ImportError
            Without matplotlib.
        """
        chart = self.figure_data(figure)
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:
            raise ImportError("plot() draws with matplotlib, which is not there: pip install matplotlib") from error
        from specdec import _drawing

        return _drawing.draw(chart) if ax is None else _drawing.draw_into(ax, chart)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it as one HTML page that asks for nothing else: words, warnings, figures, tables, and what it rests on, as
        `specdec report --static` does for plans. Figures are drawn by matplotlib; without it their data stand in their
        place.

        Parameters
        ----------
        path : path
            "report.html".

        Raises
        ------
        QuestionError
            Where the name does not end in ".html".
        OSError
            Where the place cannot be written; what was there stays.
        """
        file = pathlib.Path(path)
        if file.suffix.lower() not in (".html", ".htm"):
            raise QuestionError(f"path is {file}, but must end in .html", "path")
        partial = file.with_name(f"{file.name}.partial-{os.getpid()}")
        try:
            partial.write_text(self._page(), encoding="utf-8")
            partial.replace(file)
        finally:
            partial.unlink(missing_ok=True)

    def _page(self) -> str:
        made = {name: zlib.decompress(element).decode() for name, (_, element) in self._figures().items()}
        warnings = [*self._about.get("warnings", self._document["warnings"])]
        try:
            drawings = {name: self._drawing(name) for name in made}
        except ImportError:
            drawings = {}
            message = "the page shows data in the place of figures: matplotlib is not installed"
            warnings.append({"code": "figures_not_drawn", "message": message})
        # A plan has sections of its own.
        plan = self._about.get("plan")
        stated = os.environ.get("SOURCE_DATE_EPOCH")
        now = datetime.datetime.now(datetime.timezone.utc)
        day = datetime.datetime.fromtimestamp(int(stated), datetime.timezone.utc) if stated else now
        put = {
            "subject": self._about.get("subject") or self._subject,
            "made_on": day.strftime("%Y-%m-%d"),
            "words": self._about.get("words") or [" ".join(self.summary.split())],
            "warnings": warnings,
            "assumptions": self._document["assumptions"],
            "inputs": self._document["inputs"],
            "figures": [_with_drawing(element, drawings.get(name)) for name, element in made.items()],
            "plan": plan,
            "text": self._text,
            "tables": {} if plan else {name: self.rows(name) for name in self.tables},
        }
        return _core.page(json.dumps(put))

    def _drawing(self, figure: str) -> str:
        """As an element of a page."""
        chart = self.figure_data(figure)
        from specdec import _drawing

        drawn = io.BytesIO()
        _drawing.draw(chart, has_words=False).savefig(drawn, format="svg", metadata={"Date": None})
        data = base64.b64encode(drawn.getvalue()).decode()
        return f'<img alt="{html.escape(chart["figure"]["title"])}" src="data:image/svg+xml;base64,{data}">'

    def _repr_html_(self) -> str:
        """The page of :meth:`save` in a frame of its own."""
        page, words = html.escape(self._page()), html.escape(self.summary)
        look = "width: 100%; height: 40em; border: 0; background: white"
        return f'<iframe srcdoc="{page}" style="{look}" title="{type(self).__name__}">{words}</iframe>'


def _with_drawing(element: str, drawing: str | None) -> str:
    """A figure's element of a page; without a drawing its data stand open."""
    if drawing is not None:
        return element.replace(_DRAWING, drawing, 1)
    return element.replace(_DRAWING, "", 1).replace("<details>", "<details open>", 1)


def _is_interval(key: str, value: Any) -> bool:
    ends = key.rsplit("_", 1)[-1] in ("ci95", "bounds", "interval")
    return ends and (value is None or (isinstance(value, list) and len(value) == 2))


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(one, dict) for one in value)


def _add_to_shape(row: Mapping[str, Any], shape: dict[str, Any]) -> None:
    """Takes into the shape what a row has where the rows before it have None."""
    for key, value in row.items():
        known = shape.get(key)
        if known is None:
            shape[key] = copy.deepcopy(value)
        elif isinstance(known, dict) and isinstance(value, dict):
            _add_to_shape(value, known)


def _flat(row: Mapping[str, Any], shape: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The cells of a row; what is None in it has the columns that the shape has for it."""
    cells: dict[str, Any] = {}
    for key, value in row.items():
        name = prefix + key
        of_all: Any = shape.get(key)
        if _is_table(value) or _is_table(of_all):
            continue
        if value is None and isinstance(of_all, dict):
            value = dict.fromkeys(of_all)
        if isinstance(value, dict):
            cells.update(_flat(value, of_all, f"{name}_"))
        elif _is_interval(key, value):
            cells[f"{name}_low"], cells[f"{name}_high"] = value or (None, None)
        else:
            cells[name] = value
    return cells


class Plan(Answer):
    """Answer of :func:`specdec.plan` and :func:`specdec.plan_runs`. Its attributes are the keys of docs/schema/plan.json.

    Examples
    --------
    >>> import specdec
    >>> answer = specdec.plan(specdec.Acceptance.of_rate(0.8), specdec.Cost.of_constants(0.05))
    >>> answer.decision.verdict, answer.gamma, round(answer.speedup, 2)
    ('sure', 8, 3.09)
    """

    @property
    def _tables(self) -> Tables:  # type: ignore[override]
        points: Tables = {"points": ("points", ())}
        rows: Tables = {"rows": ("points/*/rows", ("batch", "context"))}
        first = {**rows, **points} if len(self._document["points"]) == 1 else {**points, **rows}
        return {
            **first,
            "schedule": ("schedule", ()),
            "drafts": ("drafts/*/points", ("name",)),
            "runs": ("runs", ()),
            "backtest": ("backtest", ()),
        }

    @property
    def gamma(self) -> int | None:
        """The recommended gamma at the first point, 0 for plain decoding; None if nothing prices it."""
        found: int | None = self._document["points"][0]["gamma"]
        return found

    @property
    def speedup(self) -> float | None:
        """The speedup of that gamma over plain decoding, at the first point."""
        found: float | None = self._document["points"][0]["speedup"]["value"]
        return found

    @property
    def config_text(self) -> str | None:
        """The configuration of the engine that ``emit`` names; None where there is none that it would take."""
        return self._config


class Capacity(Answer):
    """Answer of :func:`specdec.capacity`. Its attributes are the keys of docs/schema/capacity.json."""

    _subject = "a server under load"
    _tables = {
        "scenarios": ("scenarios", ()),
        "schedules": ("scenarios/*/schedule", ("name", "max_num_seqs")),
        "frontier": ("frontier", ()),
    }


class Synthetic(Answer):
    """Answer of :func:`specdec.synthetic`. Its attributes are the keys of docs/schema/synthetic.json."""

    _subject = "synthetic acceptance"
    _tables = {"settings": ("settings", ()), "law": ("law", ())}


class Difference(Answer):
    """Answer of :func:`specdec.difference`. Its attributes are the keys of docs/schema/diff.json."""

    _subject = "two runs"
    _tables = {"positions": ("positions", ()), "groups": ("groups", ()), "parts": ("parts", ())}


class Checkup(Answer):
    """Answer of :func:`specdec.doctor`. Its attributes are the keys of docs/schema/doctor.json: ``passed`` is false where
    an error was found."""

    _subject = "a checkup of files"
    _tables = {"findings": ("findings", ()), "evidence": ("findings/*/evidence", ("code", "severity"))}


class Analysis(Answer):
    """Answer of :func:`specdec.analyze`. Its attributes are the keys of docs/schema/analyze.json."""

    _tables = {
        "gammas": ("gammas", ()),
        "positions": ("position_acceptance", ()),
        "lenience": ("lenience", ()),
        "standardisation": ("standardisation", ()),
        "tasks": ("tasks", ()),
        "calibration": ("calibration", ()),
        "adaptive": ("adaptive/policies", ()),
    }


class Comparison(Answer):
    """Answer of :func:`specdec.compare`. Its attributes are the keys of docs/schema/compare.json; ``simulated`` says how
    long it took, which no two runs have alike."""

    _subject = "ways to draft and to verify"
    _tables = {"results": ("results", ()), "tasks": ("tasks", ()), "trees": ("trees", ())}


class Sweep(Answer):
    """Answer of :func:`specdec.sweep`: a table. Its attributes are the keys of docs/schema/sweep.json; the key "rows" is
    ``to_dict()["rows"]``."""

    _subject = "a sweep"
    _tables = {"points": ("rows", ())}

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the table to a Parquet file; needs pyarrow.

        Parameters
        ----------
        path : path
        """
        import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]
        import pyarrow.parquet  # type: ignore[import-untyped,import-not-found,unused-ignore]

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(self.rows()), os.fspath(path))


class Simulation(Answer):
    """Answer of :func:`specdec.simulate`: a comparison of one method. Its attributes are the keys of
    docs/schema/simulate.json."""

    _subject = "one way to draft and to verify"
    _tables = {"results": ("results", ()), "tasks": ("tasks", ()), "trees": ("trees", ())}
