"""Figures in matplotlib, as `specdec plot` draws them: the same panels, colours, dashes, marks and words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import matplotlib
import numpy as np
from matplotlib import patheffects, ticker
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.textpath import text_to_path
from matplotlib.transforms import ScaledTranslation

Numbers = np.ndarray[Any, np.dtype[np.float64]]
Json = Mapping[str, Any]
Item = TypeVar("Item")

#: Inches, and points of the letters.
WIDTH = 7.5
FONT = 720 / 56 * 0.75
EM = FONT / 72
PAD = 0.7 * EM

INK, FADED, GRID = "#1b1b1f", "#6e6e78", "#dcdce2"
#: Okabe and Ito's.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a5195")
#: In widths of the line.
DASHES: tuple[tuple[float, ...], ...] = (
    (), (4.5, 2), (1.5, 1), (4.5, 1.5, 1, 1.5), (8, 2.5), (2.5, 1.5, 1, 1.5, 1, 1.5), (10, 2, 2.5, 2)
)  # fmt: skip
#: The last two are empty.
POINTS = "os^Dvos"
HATCHES = ("", "\\\\", "///", "xx", "/", "\\", "..")
WIDTHS = {"reference": 1.2, "data": 1.36, "highlight": 2.25}
SIZES = {"reference": 4.4, "data": 4.4, "highlight": 6.0}
BAND_OPACITY = 0.22
DEPTHS = {"cells": 1.0, "band": 1.2, "box": 1.4}
#: Words are shown as they are, whatever characters a file's name has.
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}


def _nth(items: Sequence[Item], number: int) -> Item:
    """Begins again one further on, so that who has the colour of another has another dash."""
    return items[(number + number // len(items)) % len(items)]


# ---- The chart.


@dataclass
class Axis:
    key: str
    label: str
    is_log: bool
    low: float | None
    high: float | None
    categories: list[str]

    def place(self, value: float | str | None) -> float:
        if value is None:
            return math.nan
        return float(self.categories.index(value)) if isinstance(value, str) else value

    def on(self, values: Numbers) -> Numbers:
        """Places along a drawn axis."""
        return np.log(values) if self.is_log else values

    def from_on(self, values: Numbers) -> Numbers:
        return np.exp(values) if self.is_log else values


@dataclass
class Series:
    name: str
    mark: str
    role: str
    look: int
    x: Numbers
    y: Numbers
    x_low: Numbers
    x_high: Numbers
    low: Numbers
    high: Numbers
    z: Numbers
    labels: list[str]
    in_legend: bool = False

    @property
    def colour(self) -> str:
        return FADED if self.role == "reference" else COLOURS[self.look % len(COLOURS)]

    @property
    def dash(self) -> Any:
        is_solid = self.role == "highlight" and self.mark != "vertical"
        dash = () if is_solid else _nth(DASHES, self.look + (self.role == "reference"))
        return (0, dash) if dash else "solid"

    @property
    def width(self) -> float:
        return WIDTHS[self.role]

    @property
    def marker(self) -> dict[str, Any]:
        number = (self.look + self.look // len(POINTS)) % len(POINTS)
        inside = "white" if number >= len(POINTS) - 2 else self.colour
        return {"marker": POINTS[number], "markersize": SIZES[self.role], "markerfacecolor": inside,
                "markeredgecolor": self.colour}  # fmt: skip

    @property
    def line(self) -> dict[str, Any]:
        return {"color": self.colour, "linewidth": self.width, "linestyle": self.dash}

    @property
    def has_ends(self) -> bool:
        return bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())


@dataclass
class Panel:
    title: str
    x: Axis
    y: Axis
    z: Axis | None
    series: list[Series] = field(default_factory=list)

    @property
    def has_cells(self) -> bool:
        return any(s.mark == "cells" for s in self.series)

    @property
    def bars(self) -> list[Series]:
        return [s for s in self.series if s.mark == "bars"]


def _axis(given: Json) -> Axis:
    return Axis(given["key"], _visible(given["label"]), given["scale"] == "logarithmic", given["low"], given["high"], given["categories"])


def _series(panel: Panel, given: Json, rows: Sequence[Json]) -> Series:
    def column(axis: Axis, ending: str = "") -> Numbers:
        return np.array([axis.place(row.get(axis.key + ending)) for row in rows], dtype=np.float64)

    return Series(
        _visible(given["name"]), given["mark"], given["role"], given["look"],
        column(panel.x), column(panel.y), column(panel.x, "_low"), column(panel.x, "_high"),
        column(panel.y, "_low"), column(panel.y, "_high"),
        column(panel.z) if panel.z else np.array([]), [_visible(row.get("label") or "") for row in rows],
    )  # fmt: skip


def _panels(chart: Json) -> list[Panel]:
    rows: Iterator[Json] = iter(chart["data"])
    panels = []
    for given in chart["figure"]["panels"]:
        panel = Panel(_visible(given["title"]), _axis(given["x"]), _axis(given["y"]), _axis(given["z"]) if given["z"] else None)
        seen = set()
        for of in given["series"]:
            one = _series(panel, of, [next(rows) for _ in range(of["marks"])])
            one.in_legend = bool(one.name) and (one.name, one.mark) not in seen and one.mark not in ("cells", "text")
            seen.add((one.name, one.mark))
            panel.series.append(one)
        panels.append(panel)
    return panels


# ---- What axes cover.


def _edges(places: Numbers, axis: Axis) -> Numbers:
    """Between cells, and half a cell beyond the outer ones."""
    on = axis.on(places)
    between = (on[:-1] + on[1:]) / 2
    return axis.from_on(np.concatenate([[1.5 * on[0] - 0.5 * on[1]], between, [1.5 * on[-1] - 0.5 * on[-2]]]))


def _grid(panel: Panel, cells: Series) -> tuple[Numbers, Numbers]:
    columns = int(np.argmax(cells.y != cells.y[0]))
    return _edges(cells.x[:columns], panel.x), _edges(cells.y[::columns], panel.y)


def _bar_spacing(panel: Panel) -> float:
    places = np.unique(np.concatenate([s.x[np.isfinite(s.x)] for s in panel.bars]))
    return float(np.diff(places).min()) if len(places) > 1 else 1.0


def _bar_width(panel: Panel) -> float:
    return 0.84 * _bar_spacing(panel) / len(panel.bars)


def _covered(axis: Axis, values: Sequence[Numbers]) -> tuple[float, float]:
    """The range to draw axes at; without values a default, for one value something to both of its sides."""
    all_of = np.concatenate(values)
    all_of = all_of[np.isfinite(all_of) & ((all_of > 0) | (not axis.is_log))]
    if not len(all_of):
        return (1.0, 10.0) if axis.is_log else (0.0, 1.0)
    low, high = float(all_of.min()), float(all_of.max())
    if low < high:
        return low, high
    if axis.is_log:
        return low / 2, high * 2
    half = max(0.5, abs(low) / 10)
    return low - half, high + half


def _with_room(axis: Axis, low: float, high: float) -> tuple[float, float]:
    """So that the outer marks do not lie on the panel's edge. What begins near 0 begins there."""
    if axis.is_log:
        room = (high / low) ** 0.04
        return low / room, high * room
    room = 0.04 * (high - low)
    return (0.0 if 0 <= low < 0.3 * high else low - room), high + room


def _range(axis: Axis, values: Sequence[Numbers], needs_room: bool) -> tuple[float, float]:
    if axis.categories:
        return -0.5, len(axis.categories) - 0.5
    covered = _covered(axis, values)
    if needs_room:
        covered = _with_room(axis, *covered)
    low = covered[0] if axis.low is None else axis.low
    high = covered[1] if axis.high is None else axis.high
    if low < high:
        return low, high
    # The end that is asked for lies beyond all marks.
    if axis.low is not None:
        return low, low * 10 if axis.is_log else low + 1
    return (high / 10 if axis.is_log else high - 1), high


def _ranges(panel: Panel) -> tuple[tuple[float, float], tuple[float, float]]:
    x = [values for s in panel.series for values in (s.x, s.x_low, s.x_high)]
    y = [values for s in panel.series for values in (s.y, s.low, s.high)]
    for s in panel.series:
        if s.mark == "cells":
            columns, rows = _grid(panel, s)
            x.append(columns)
            y.append(rows)
    if panel.bars:
        half = _bar_spacing(panel) / 2
        places = np.concatenate([s.x[np.isfinite(s.x)] for s in panel.bars])
        x.append(np.array([places.min() - half, places.max() + half]))
        y.append(np.zeros(1))
    return _range(panel.x, x, False), _range(panel.y, y, not panel.has_cells)


def _within(values: Numbers, edge: float, axis: Axis, beside: Numbers | None = None) -> Numbers:
    """Ends of marks: at the panel's edge where they are missing, or no place of a logarithmic axis.

    Parameters
    ----------
    beside : array, optional
        The other ends: where both are missing there is no mark.
    """
    missing = ~np.isfinite(values)
    if beside is not None:
        missing &= np.isfinite(beside)
    return np.where(missing | ((values <= 0) & axis.is_log), edge, values)


# ---- Marks.


class PanelDrawing:
    """A panel in its axes."""

    def __init__(self, panel: Panel, ax: Axes) -> None:
        self.panel = panel
        self.ax = ax
        self.x_range, self.y_range = _ranges(panel)

    def draw(self, room: tuple[float, float]) -> None:
        """
        Parameters
        ----------
        room : (float, float)
            Of the axes, in inches.
        """
        self._set_axes(room)
        for s in self.panel.series:
            getattr(self, f"_{s.mark}")(s, DEPTHS.get(s.mark, 2.0))

    def _set_axes(self, room: tuple[float, float]) -> None:
        ax = self.ax
        ax.set_axisbelow(True)
        if not self.panel.has_cells:
            ax.grid(color=GRID, linewidth=0.5)
        for side, spine in ax.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set(color=INK, linewidth=0.7)
        ax.tick_params(direction="out", color=INK, labelcolor=INK, labelsize=FONT)
        for which, axis, limits, length in (
            ("x", self.panel.x, self.x_range, room[0]),
            ("y", self.panel.y, self.y_range, room[1]),
        ):
            ax.set(**{f"{which}scale": "log" if axis.is_log else "linear", f"{which}lim": limits})
            ax.set(**{f"{which}label": "\n".join(_lines(axis.label, length, FONT))})
            drawn = ax.xaxis if which == "x" else ax.yaxis
            drawn.label.set(fontsize=FONT, color=INK, **PLAIN)
            if axis.categories:
                width = length / len(axis.categories) - 0.7 * EM if which == "x" else WIDTH / 4
                labels = [_shortened(_visible(name), width, FONT) for name in axis.categories]
                drawn.set_ticks(range(len(labels)), labels, **PLAIN)
            else:
                _set_tics(drawn, axis, limits, self._places(which), length / EM / (2.2 if which == "x" else 1.6))

    def _places(self, which: str) -> Numbers:
        """Where marks stand; ends of intervals are no places."""
        values = [
            s.x if which == "x" else s.y
            for s in self.panel.series
            if s.mark not in ("text", "vertical") and not (which == "y" and s.has_ends)
        ]
        all_of = np.concatenate([*values, np.array([])])
        return np.unique(all_of[np.isfinite(all_of)])

    def _line(self, s: Series, depth: float) -> None:
        if self.panel.has_cells:
            (line,) = self.ax.plot(s.x, s.y, color="white", linewidth=s.width, linestyle=s.dash, zorder=depth)
            line.set_path_effects([patheffects.Stroke(linewidth=s.width + 1.5, foreground="black"), patheffects.Normal()])
        elif s.role == "reference":
            self.ax.plot(s.x, s.y, zorder=depth, **s.line)
        else:
            self.ax.plot(s.x, s.y, zorder=depth, **s.line)
            some = slice(None, None, max(1, len(s.x) // 12))
            self._draw_points(s, s.x[some], s.y[some], depth)

    def _steps(self, s: Series, depth: float) -> None:
        self.ax.plot(s.x, s.y, drawstyle="steps-post", zorder=depth, **s.line)

    def _error_bars(self, s: Series, x: Numbers, colour: str, depth: float) -> None:
        if not s.has_ends:
            return
        low = _within(s.low, self.y_range[0], self.panel.y, s.high)
        high = _within(s.high, self.y_range[1], self.panel.y, s.low)
        self.ax.vlines(x, low, high, colors=colour, linewidth=0.8, zorder=depth)
        for ends in (low, high):
            self.ax.plot(x, ends, linestyle="none", marker="_", markersize=5, color=colour, markeredgewidth=0.8, zorder=depth)

    def _draw_points(self, s: Series, x: Numbers, y: Numbers, depth: float) -> None:
        """Those on the panel's edge are whole."""
        shown = (self.x_range[0] <= x) & (x <= self.x_range[1]) & (self.y_range[0] <= y) & (y <= self.y_range[1])
        self.ax.plot(x[shown], y[shown], linestyle="none", clip_on=False, zorder=depth, **s.marker)

    def _points(self, s: Series, depth: float) -> None:
        self._error_bars(s, s.x, s.colour, depth)
        self._draw_points(s, s.x, s.y, depth)

    def _bars(self, s: Series, depth: float) -> None:
        width = _bar_width(self.panel)
        before = next(i for i, other in enumerate(self.panel.bars) if other is s)
        x = s.x + (before - (len(self.panel.bars) - 1) / 2) * width
        self.ax.bar(x, s.y, width, zorder=depth, **self._filling(s))
        self._error_bars(s, x, INK, depth)

    def _band(self, s: Series, depth: float) -> None:
        low = _within(s.low, self.y_range[0], self.panel.y, s.high)
        high = _within(s.high, self.y_range[1], self.panel.y, s.low)
        self.ax.fill_between(s.x, low, high, zorder=depth, **self._filling(s))

    def _box(self, s: Series, depth: float) -> None:
        left = _within(s.x_low, self.x_range[0], self.panel.x)
        right = _within(s.x_high, self.x_range[1], self.panel.x)
        low = _within(s.low, self.y_range[0], self.panel.y)
        high = _within(s.high, self.y_range[1], self.panel.y)
        for x0, x1, y0, y1 in zip(left, right, low, high):
            box = Rectangle((x0, y0), x1 - x0, y1 - y0, zorder=depth, **self._filling(s))
            if self.panel.has_cells:
                box.set(edgecolor="white", facecolor="none", hatch="")
                box.set_path_effects([patheffects.Stroke(linewidth=s.width + 1.5, foreground="black"), patheffects.Normal()])
            self.ax.add_patch(box)

    def _cells(self, s: Series, depth: float) -> None:
        z = self.panel.z
        assert z is not None
        columns, rows = _grid(self.panel, s)
        low, high = _range(z, [s.z], False)
        image = self.ax.pcolormesh(
            columns, rows, np.ma.masked_invalid(s.z.reshape(len(rows) - 1, len(columns) - 1)), cmap="viridis",
            norm=LogNorm(low, high) if z.is_log else Normalize(low, high), zorder=depth, rasterized=True,
        )  # fmt: skip
        bar = self.ax.figure.colorbar(image, ax=self.ax)
        _set_tics(bar.ax.yaxis, z, (low, high), np.array([]), 9)
        bar.outline.set_visible(False)
        bar.ax.tick_params(color=INK, labelcolor=INK, labelsize=FONT)
        bar.set_label(z.label, fontsize=FONT, color=INK, **PLAIN)

    def _horizontal(self, s: Series, depth: float) -> None:
        for y in s.y:
            self.ax.axhline(y, zorder=depth, **s.line)

    def _vertical(self, s: Series, depth: float) -> None:
        for x in s.x:
            self.ax.axvline(x, zorder=depth + 0.2, **s.line)

    def _text(self, s: Series, depth: float) -> None:
        boxed = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if self.panel.has_cells else None
        for x, y, label in zip(s.x, s.y, s.labels):
            if math.isfinite(x) and math.isfinite(y):
                self.ax.text(x, y, label, ha="center", va="center", fontsize=FONT, color=INK, bbox=boxed, clip_on=True,
                             zorder=depth + 0.3, **PLAIN)  # fmt: skip

    @staticmethod
    def _filling(s: Series) -> dict[str, Any]:
        if s.mark == "band" or (s.mark == "box" and s.role == "reference"):
            return {"facecolor": s.colour, "alpha": BAND_OPACITY, "linewidth": 0}
        if s.mark == "box" and s.role == "highlight":
            return {"facecolor": "none", "edgecolor": s.colour, "linewidth": s.width}
        hatch = _nth(HATCHES, s.look)
        inside = {"facecolor": "white", "edgecolor": s.colour, "hatch": hatch} if hatch else {"facecolor": s.colour, "edgecolor": INK}
        return {**inside, "linewidth": 0.6}

    def legend(self) -> dict[tuple[Any, ...], tuple[str, Artist]]:
        """A name and a sample for each entry, by what tells it from others."""
        entries: dict[tuple[Any, ...], tuple[str, Artist]] = {}
        for s in self.panel.series:
            if s.in_legend:
                entries.setdefault((s.name, s.role, s.look, self._kind_of_sample(s)), (s.name, self._sample(s)))
        return entries

    @staticmethod
    def _kind_of_sample(s: Series) -> str:
        is_line = s.mark in ("steps", "horizontal", "vertical") or (s.mark == "line" and s.role == "reference")
        return "line alone" if is_line else s.mark

    def _sample(self, s: Series) -> Artist:
        if s.mark in ("bars", "band", "box"):
            filling = self._filling(s)
            return Patch(**({**filling, "facecolor": "none", "edgecolor": INK} if self.panel.has_cells else filling))
        if s.mark == "line" and self.panel.has_cells:
            return Line2D([], [], **{**s.line, "color": INK})
        if s.mark == "points":
            return Line2D([], [], linestyle="none", **s.marker)
        has_points = s.mark == "line" and s.role != "reference"
        return Line2D([], [], **s.line, **(s.marker if has_points else {}))


# ---- Tics.


def _set_tics(drawn: Any, axis: Axis, limits: tuple[float, float], places: Numbers, room: float) -> None:
    """
    Parameters
    ----------
    places : array
        Where marks stand.
    room : float
        For so many whole numbers; others are longer.
    """
    most = max(2, min(12, int(room)))
    low, high = limits
    if not axis.is_log:
        if len(places) and bool((places == np.round(places)).all()):
            steps = (max(1, math.gcd(*map(int, places))) * factor * 10**power for power in range(9) for factor in (1, 2, 5))
            drawn.set_major_locator(ticker.MultipleLocator(next(step for step in steps if (high - low) / step < most)))
        else:
            drawn.set_major_locator(ticker.MaxNLocator(nbins=max(2, min(int(0.75 * room), 9)), steps=[1, 2, 5, 10]))
        drawn.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:.6g}"))
        return
    powers_of_two = 1 < len(places) <= most and high / low > 3 and bool((np.log2(places) % 1 == 0).all())
    if powers_of_two:
        drawn.set_major_locator(ticker.FixedLocator(list(places)))
        drawn.set_minor_locator(ticker.NullLocator())
    elif high / low < 10:
        drawn.set_major_locator(ticker.MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
        drawn.set_minor_locator(ticker.NullLocator())
    elif high / low <= 10**2.2:
        drawn.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        drawn.set_minor_locator(ticker.NullLocator())
    else:
        drawn.set_major_locator(ticker.LogLocator())
    drawn.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:.6g}"))
    drawn.set_minor_formatter(ticker.NullFormatter())


# ---- Words. Lengths are inches.


def _length(text: str, size: float, bold: bool = False) -> float:
    """As it is drawn at a screen's resolution, where letters are as wide as whole pixels."""
    hinted = 1.05
    font = FontProperties(size=size, weight="bold" if bold else "normal")
    return hinted * float(text_to_path.get_text_width_height_descent(text, font, False)[0]) / 72


def _visible(text: str) -> str:
    """In one line, control characters as they are written in C."""
    written = {"\n": "\\n", "\t": "\\t"}
    return "".join(c if c >= " " and c != "\x7f" else written.get(c, f"\\x{ord(c):02x}") for c in text)


def _lines(text: str, width: float, size: float, bold: bool = False) -> list[str]:
    """Broken at blanks."""
    lines: list[str] = []
    for word in _visible(text).split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and _length(longer, size, bold) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _shortened(text: str, width: float, size: float) -> str:
    """Without its middle where it is longer than that; a third is left for the end."""
    if _length(text, size) <= width:
        return text
    for left in range(len(text) - 1, 1, -1):
        end = left // 3
        cut = f"{text[: left - end]}\u2026{text[len(text) - end :]}"
        if _length(cut, size) <= width:
            return cut
    return "\u2026"


# ---- The figure.


class Drawing(Figure):
    """A figure that a notebook shows, and that belongs to no window."""

    def _repr_png_(self) -> bytes:
        import io

        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


def _put_legend(make: Callable[..., Legend], entries: Sequence[tuple[str, Artist]], width: float, **given: Any) -> float:
    """A legend of as many columns as there is room for, or as are given; its height."""
    names = [_shortened(name, width - 4.5 * EM, FONT) for name, _ in entries]
    longest = max(_length(name, FONT) for name in names) + 4.5 * EM
    columns = max(1, min(int(width / longest), len(names)))
    how = {"ncols": columns, "fontsize": FONT, "frameon": False, "borderaxespad": 0, "handlelength": 2.6,
           "columnspacing": 1.5, "labelspacing": 0.25}  # fmt: skip
    # Names that begin with an underscore would be left out.
    legend = make([sample for _, sample in entries], ["name"] * len(names), **{**how, **given})
    for text, name in zip(legend.get_texts(), names):
        text.set(text=name, color=INK, **PLAIN)
    return (math.ceil(len(names) / columns) * 1.4 + 0.5) * EM


def _share_legend(drawings: Sequence[PanelDrawing]) -> bool:
    """Whether one legend serves all panels: no two names have one look."""
    named = [s for drawing in drawings for s in drawing.panel.series if s.in_legend]
    names: dict[tuple[str, str, int], str] = {}
    return all(names.setdefault((s.mark, s.role, s.look), s.name) == s.name for s in named)


def _panel_height(columns: int, rows: int, width: float) -> float:
    share = 0.85 if columns > 2 else 0.68 if columns == 2 else 0.44 if rows > 1 else 0.54
    return share * width + 3.5 * EM


def draw(chart: Json, *, has_words: bool = True) -> Figure:
    """
    Parameters
    ----------
    chart : mapping
        "figure" and "data" of docs/schema/plot.figure.json.
    has_words : bool
        With its title and caption.
    """
    panels = _panels(chart)
    columns = min(chart["figure"]["columns"], len(panels))
    rows = -(-len(panels) // columns)
    width = (WIDTH - PAD) / columns
    room = WIDTH - 2 * PAD
    title_size, caption_size = 1.15 * FONT, 0.86 * FONT
    title = _lines(chart["figure"]["title"], room, title_size, bold=True) if has_words else []
    caption = _lines(chart["figure"]["caption"], room, caption_size) if has_words else []

    layout = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.04)
    figure = Drawing(facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, subplot_kw={"facecolor": "white"}).flatten()
    drawings = [PanelDrawing(panel, ax) for panel, ax in zip(panels, axes)]
    for unused in axes[len(panels) :]:
        unused.remove()

    heights = _panel_height(columns, rows, width) * rows
    titles = [_lines(panel.title, width - 4 * EM, FONT) if panel.title else [] for panel in panels]
    heights += rows * 1.35 * EM * max(0, *(len(lines) - 1 for lines in titles), 0)
    for drawing, lines in zip(drawings, titles):
        drawing.draw((width - 6 * EM - (8 * EM if drawing.panel.has_cells else 0), heights / rows - 6 * EM))
        if lines:
            drawing.ax.set_title("\n".join(lines), fontsize=FONT, color=INK, **PLAIN)

    legend_height = 0.0
    if _share_legend(drawings):
        entries = {key: entry for drawing in drawings for key, entry in drawing.legend().items()}
        if entries:
            legend_height = _put_legend(figure.legend, list(entries.values()), room, loc="lower center")
    else:
        below = [0.0] * rows
        for i, drawing in enumerate(drawings):
            if drawing.legend():
                words = 2.7 + 1.3 * len(drawing.ax.get_xlabel().split("\n"))
                below_axis = drawing.ax.transAxes + ScaledTranslation(0, -words * EM, figure.dpi_scale_trans)
                height = _put_legend(drawing.ax.legend, list(drawing.legend().values()), width, loc="upper center",
                                     bbox_to_anchor=(0.5, 0), bbox_transform=below_axis)  # fmt: skip
                below[i // columns] = max(below[i // columns], height)
        heights += sum(below)

    title_height = 1.35 * len(title) * title_size / 72 + 1.2 * PAD
    caption_height = 1.35 * len(caption) * caption_size / 72 + 1.2 * PAD
    height = title_height + heights + legend_height + caption_height
    figure.set_size_inches(WIDTH, height)
    figure.text(PAD / WIDTH, 1 - PAD / height, "\n".join(title), ha="left", va="top", fontsize=title_size,
                fontweight="bold", color=INK, **PLAIN)  # fmt: skip
    figure.text(PAD / WIDTH, 0.6 * PAD / height, "\n".join(caption), ha="left", va="bottom", fontsize=caption_size,
                color=INK, linespacing=1.35, **PLAIN)  # fmt: skip
    for legend in figure.legends:
        legend.set_bbox_to_anchor((0.5, caption_height / height), figure.transFigure)
        legend.set_in_layout(False)
    bottom = (caption_height + legend_height) / height
    layout.set(rect=(0, bottom, 1 - 0.7 * PAD / WIDTH, heights / height))
    return figure


def draw_into(ax: Axes, chart: Json) -> Figure:
    """Into axes of the user's, with title and legend; without the caption.

    Raises
    ------
    ValueError
        Where the chart has several panels.
    """
    panels = _panels(chart)
    if len(panels) != 1:
        raise ValueError(f"ax is given, but {chart['figure']['name']} has {len(panels)} panels, each with axes of its own")
    drawing = PanelDrawing(panels[0], ax)
    room = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    drawing.draw((room.width, room.height))
    ax.set_title("\n".join(_lines(chart["figure"]["title"], room.width, FONT)), fontsize=FONT, color=INK, **PLAIN)
    entries = list(drawing.legend().values())
    if entries:
        _put_legend(ax.legend, entries, room.width, ncols=1, frameon=True, facecolor="white", edgecolor="none",
                    borderaxespad=0.5)  # fmt: skip
    found = ax.figure
    return found if isinstance(found, Figure) else found.figure
