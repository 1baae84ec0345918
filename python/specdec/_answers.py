"""What a question is answered by."""

from __future__ import annotations

import copy
import html
import itertools
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure
    import pandas

#: The arrays of objects of an answer, the main one first, with what their rows take from the objects around them.
Tables = dict[str, tuple[str, tuple[str, ...]]]
#: Each figure by its name, as `specdec plot NAME --format json` prints it, compressed: a map has thousands of rows.
Figures = dict[str, bytes]
Self = TypeVar("Self", bound="Answer")


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

    def __init__(
        self,
        document: dict[str, Any],
        text: str,
        config: str | None = None,
        charts: Figures | Callable[[], list[tuple[str, str]]] | None = None,
    ) -> None:
        self._document = document
        self._text = text
        self._config = config
        # Made when they are first asked for.
        self._charts = charts

    def __reduce__(self: Self) -> tuple[Callable[..., Self], tuple[dict[str, Any], str, str | None, Figures]]:
        return type(self), (self._document, self._text, self._config, self._figures())

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
        """The first paragraph of the text."""
        return self._text.split("\n\n")[0]

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
            whole = [row if isinstance(row, dict) else {"row": i, "value": row} for i, row in enumerate(found or [], 1)]
            return [_flat({k: v for k, v in row.items() if k not in tables_within}) for row in whole]
        return [
            _flat({**{key: one[key] for key in keys}, **row}) for one in found or [] for row in one[inner[0]]
        ]

    @property
    def tables(self) -> list[str]:
        """What :meth:`rows` and :meth:`to_dataframe` give, the main table first."""
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
            made = self._charts() if self._charts else []
            self._charts = {name: zlib.compress(chart.encode()) for name, chart in made}
        return self._charts

    @property
    def figures(self) -> list[str]:
        """What :meth:`plot` draws, the main one first: the names of `specdec plot`."""
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
        chart: dict[str, Any] = json.loads(zlib.decompress(made[chosen]))
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

    def _repr_html_(self) -> str:
        rows = self.rows()
        columns = list(dict.fromkeys(itertools.chain.from_iterable(rows)))
        used = [name for name in columns if any(row.get(name) is not None for row in rows)]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in used)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_cell(row.get(name)))}</td>" for name in used) + "</tr>" for row in rows
        )
        warnings = "".join(f"<li>{html.escape(one['message'])}</li>" for one in self._document["warnings"])
        return (
            f"<p>{html.escape(self.summary)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            + (f"<ul>{warnings}</ul>" if warnings else "")
        )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return "; ".join(_cell(one) for one in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_interval(key: str, value: Any) -> bool:
    ends = key.rsplit("_", 1)[-1] in ("ci95", "bounds", "interval")
    return ends and (value is None or (isinstance(value, list) and len(value) == 2))


def _flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for key, value in row.items():
        name = prefix + key
        if isinstance(value, list) and any(isinstance(one, dict) for one in value):
            continue
        if isinstance(value, dict):
            cells.update(_flat(value, f"{name}_"))
        elif _is_interval(key, value):
            cells[f"{name}_low"], cells[f"{name}_high"] = value or (None, None)
        else:
            cells[name] = value
    return cells


class Plan(Answer):
    """What :func:`specdec.plan` and :func:`specdec.plan_runs` answer. Its attributes are the keys of docs/schema/plan.json.

    Examples
    --------
    >>> import specdec
    >>> answer = specdec.plan(specdec.Acceptance.of_rate(0.8), specdec.Cost.of_constants(0.05))
    >>> answer.points[0].verdict, answer.gamma, round(answer.speedup, 2)
    ('speculate', 8, 3.09)
    """

    @property
    def _tables(self) -> Tables:  # type: ignore[override]
        points: Tables = {"points": ("points", ())}
        rows: Tables = {"rows": ("points/*/rows", ("batch", "context"))}
        if self._document["rows"] is not None:
            rows = {"rows": ("rows", ())}
            first = {**rows, **points}
        else:
            first = {**points, **rows}
        return {
            **first,
            "schedule": ("schedule", ()),
            "drafts": ("drafts/*/points", ("name",)),
            "runs": ("runs", ()),
            "backtest": ("backtest", ()),
        }

    @property
    def gamma(self) -> int | None:
        """The recommended gamma at the first point, 0 for plain decoding; None where there is none."""
        if self._document["recommended"] is not None:
            found: int | None = self._document["recommended"]["gamma"]
            return found
        best = self._best
        return None if best is None else best["gamma"]

    @property
    def speedup(self) -> float | None:
        """Of that gamma over plain decoding, at the first point."""
        best = self._best
        return None if best is None else best["speedup"]

    @property
    def _best(self) -> dict[str, Any] | None:
        gamma = (self._document["recommended"] or {}).get("gamma")
        if gamma is not None:
            for row in self._document["rows"] or []:
                if row["gamma"] == gamma:
                    chosen: dict[str, Any] = row
                    return chosen
        best: dict[str, Any] | None = self._document["points"][0]["optimal"] if self._document["points"] else None
        return best

    @property
    def config_text(self) -> str | None:
        """The configuration of the engine that ``emit`` names; None where there is none that it would take."""
        return self._config


class Capacity(Answer):
    """What :func:`specdec.capacity` answers. Its attributes are the keys of docs/schema/capacity.json."""

    _tables = {
        "scenarios": ("scenarios", ()),
        "schedules": ("scenarios/*/schedule", ("name", "max_num_seqs")),
        "frontier": ("frontier", ()),
    }


class Analysis(Answer):
    """What :func:`specdec.analyze` answers. Its attributes are the keys of docs/schema/analyze.json."""

    _tables = {
        "gammas": ("gammas", ()),
        "positions": ("position_acceptance", ()),
        "lenience": ("lenience", ()),
        "standardisation": ("standardisation", ()),
        "tasks": ("tasks", ()),
        "beta_histogram": ("beta_histogram", ()),
        "autocorrelation": ("autocorrelation", ()),
        "calibration": ("calibration", ()),
        "adaptive": ("adaptive/policies", ()),
    }
