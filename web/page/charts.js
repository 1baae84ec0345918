// Draws what C++ calls a Chart (render/figures/chart.hpp) by ECharts: each panel one drawing, values shown where the
// pointer is.
import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import {
  AriaComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent, VisualMapComponent,
} from "echarts/components";
import { init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";

use([
  AriaComponent, BarChart, CustomChart, GridComponent, LegendComponent, LineChart, MarkLineComponent, SVGRenderer,
  ScatterChart, TooltipComponent, VisualMapComponent,
]);

// Okabe and Ito's colours; dashes and points tell the series apart without them.
const lightColours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9"];
const darkColours = ["#56b4e9", "#ff9e4a", "#2fc79a", "#e79fc6", "#f0e442", "#9ad0f5"];
const dashes = ["solid", "dashed", "dotted", [10, 4, 2, 4], [4, 4], [12, 3]];
const symbols = ["circle", "rect", "triangle", "diamond", "emptyCircle", "emptyRect"];

const darkScreen = matchMedia("(prefers-color-scheme: dark)");
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const drawings = new Set();

/** Colours of the page as it is shown; of `panel`, light ones on the cells of a heat map, which are light by day and night.
 */
function theme(panel) {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  const printed = matchMedia("print").matches;
  const onCells = panel !== undefined && panel.series.some((series) => series.mark === "cells");
  return {
    colours: darkScreen.matches && !printed && !onCells ? darkColours : lightColours,
    word: onCells ? "#1b1f24" : of("--ink"), halo: onCells ? "#ffffff" : of("--paper"),
    font: getComputedStyle(document.body).fontFamily, ink: of("--ink"), faded: of("--faded"), line: of("--line"), paper: of("--paper"),
  };
}

/** To four digits, as people read numbers. */
export function brief(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "-";
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)));
}

/** The same at an axis: 10,000. */
function grouped(value) {
  return Math.abs(value) >= 1000 && Number.isInteger(value) ? value.toLocaleString("en") : brief(value);
}

function text(value) {
  const element = document.createElement("span");
  element.textContent = value;
  return element.innerHTML;
}

/** A rectangle from (low, low) to (high, high) in coordinates of the axes. */
function rectangle(api, from, to, style) {
  const [x0, y0] = api.coord(from);
  const [x1, y1] = api.coord(to);
  return {
    type: "rect",
    shape: { x: Math.min(x0, x1), y: Math.min(y0, y1), width: Math.abs(x1 - x0), height: Math.abs(y1 - y0) },
    style,
  };
}

function polygon(series, colour) {
  const known = series.x.map((x, i) => [x, series.low[i], series.high[i]]).filter((one) => !one.includes(null));
  const corners = [...known.map(([x, , high]) => [x, high]), ...known.map(([x, low]) => [x, low]).reverse()];
  return {
    type: "custom", name: series.name, silent: true, z: 1, data: corners, color: colour, clip: true,
    encode: { x: 0, y: 1 },
    // All corners stretch the axes; the first one draws the area.
    renderItem: (params, api) => (params.dataIndex > 0 ? null : {
      type: "polygon", shape: { points: corners.map((corner) => api.coord(corner)) },
      style: { fill: colour, opacity: 0.18 },
    }),
    tooltip: { show: false },
  };
}

function errorBars(series, colour) {
  return {
    type: "custom", name: series.name, silent: true, z: 3, color: colour,
    data: series.x.map((x, i) => [x, series.low[i], series.high[i]]).filter((one) => !one.includes(null)),
    encode: { x: 0, y: [1, 2] },
    renderItem: (_, api) => {
      const low = api.coord([api.value(0), api.value(1)]);
      const high = api.coord([api.value(0), api.value(2)]);
      const line = (x1, y1, x2, y2) => ({
        type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: colour, lineWidth: 1.5 },
      });
      return {
        type: "group",
        children: [line(...low, ...high), line(low[0] - 4, low[1], low[0] + 4, low[1]),
          line(high[0] - 4, high[1], high[0] + 4, high[1])],
      };
    },
    tooltip: { show: false },
  };
}

/** Where the data leave room for the name of a line across the panel. */
function nameOfLine(series, panel, along) {
  const value = series[along][0];
  const points = panel.series.flatMap((s) => (["line", "steps", "points"].includes(s.mark) && s.y ? s.x.map((x, i) => [x, s.y[i]]) : []))
    .filter(([, y]) => y !== null);
  if (points.length === 0 || value === undefined) return "insideEndTop";
  const [first, last] = [points.reduce((a, b) => (b[0] < a[0] ? b : a)), points.reduce((a, b) => (b[0] > a[0] ? b : a))];
  if (along === "y") return Math.abs(first[1] - value) > Math.abs(last[1] - value) ? "insideStartTop" : "insideEndTop";
  const heights = points.map(([, y]) => y), near = points.reduce((a, b) => (Math.abs(b[0] - value) < Math.abs(a[0] - value) ? b : a));
  return near[1] > (Math.min(...heights) + Math.max(...heights)) / 2 ? "insideStartTop" : "insideEndTop";
}

function lines(series, look, along, colour, panel) {
  return {
    type: "line", name: series.name, data: [], silent: true, color: colour,
    markLine: {
      symbol: "none", silent: true, animation: false,
      lineStyle: { color: colour, type: "dashed", width: series.role === "highlight" ? 2.5 : 1.5 },
      label: { formatter: series.name, position: nameOfLine(series, panel, along),
        color: look.word, textBorderColor: look.halo, textBorderWidth: 3 },
      data: series[along].map((value) => ({ [along + "Axis"]: value })),
    },
  };
}

/** Rectangles; an end that is not finite is that of the panel. */
function boxes(series, named, look) {
  const fill = { reference: look.faded, data: named.color }[series.role];
  const style = { fill, opacity: series.role === "reference" ? 0.15 : 1, stroke: "none" };
  return {
    ...named, type: "custom", clip: true, z: series.role === "highlight" ? 5 : 0, silent: true, tooltip: { show: false },
    data: series.x_low.map((_, i) => [series.x_low[i], series.x_high[i], series.low[i], series.high[i]]),
    encode: { x: [0, 1], y: [2, 3] },
    renderItem: (params, api) => {
      const i = params.dataIndex, { x, y, width, height } = params.coordSys;
      const at = (across, up) => api.coord([across ?? 0, up ?? 1]);
      const low = at(series.x_low[i], series.low[i]), high = at(series.x_high[i], series.high[i]);
      const left = series.x_low[i] === null ? x : low[0], right = series.x_high[i] === null ? x + width : high[0];
      const bottom = series.low[i] === null ? y + height : low[1], top = series.high[i] === null ? y : high[1];
      // A box without length must still be visible.
      const [wide, tall] = series.role === "highlight" ? [Math.max(right - left, 7), Math.max(bottom - top, 7)] : [right - left, bottom - top];
      const shape = { x: (left + right - wide) / 2, y: (bottom + top - tall) / 2, width: wide, height: tall };
      if (series.role !== "highlight") return { type: "rect", shape, style };
      // Seen on whatever lies below.
      const frame = (stroke, lineWidth) => ({ type: "rect", shape, style: { fill: "none", stroke, lineWidth } });
      return { type: "group", children: [frame("#ffffff", 5), frame("#1b1f24", 2.5)] };
    },
  };
}

const isLogarithmic = (axis) => axis.scale === "logarithmic";

/** Cells of a heat map, and the scale that colours them. */
function cells(series, panel) {
  // From the middle of a cell to its edge: a distance, or a factor on a logarithmic axis.
  const half = (values, axis) => {
    const places = [...new Set(values)].sort((a, b) => a - b);
    if (places.length < 2) return isLogarithmic(axis) ? 1 : 0.5;
    return isLogarithmic(axis) ? Math.sqrt(places[1] / places[0]) : (places[1] - places[0]) / 2;
  };
  const width = half(series.x, panel.x), height = half(series.y, panel.y);
  const edge = (value, axis, by, up) => (isLogarithmic(axis) ? (up ? value * by : value / by) : (up ? value + by : value - by));
  return {
    type: "custom", name: series.name, clip: true, z: 1,
    data: series.x.map((x, i) => [x, series.y[i], shadeOf(panel, series.z[i]), series.labels ? series.labels[i] : "", series.z[i]]),
    encode: { x: 0, y: 1 },
    renderItem: (_, api) => {
      const x = api.value(0), y = api.value(1);
      return rectangle(api, [edge(x, panel.x, width, false), edge(y, panel.y, height, false)],
        [edge(x, panel.x, width, true), edge(y, panel.y, height, true)], { fill: api.visual("color"), stroke: api.visual("color"), lineWidth: 1 });
    },
    tooltip: {
      trigger: "item",
      formatter: ({ data: [x, y, , label, z] }) =>
        `${text(panel.x.label)} <b>${brief(x)}</b><br>${text(panel.y.label)} <b>${brief(y)}</b><br>` +
        `${text(panel.z.label)} <b>${brief(z)}</b>${label ? "<br>" + text(label) : ""}`,
    },
  };
}

/** Whether the end of an axis is worth a number; undefined where there is no end, and the chart chooses one. */
function isRound(end) {
  return end === null || end === undefined ? undefined : Number(end.toPrecision(2)) === end;
}

/** @param placed   something lies between the places of an axis of names
 *  @param doubles  the data lie at powers of 2 */
function axis(of, look, gap, placed = false, doubles = false) {
  const common = {
    name: of.label, nameLocation: "middle", nameGap: gap, nameTextStyle: { color: look.ink, fontSize: 13, fontFamily: look.font },
    axisLine: { lineStyle: { color: look.faded }, onZero: false },
    axisLabel: { color: look.ink, hideOverlap: true, fontFamily: look.font },
    splitLine: { lineStyle: { color: look.line, opacity: 0.6 } },
  };
  const names = of.categories || [];
  if (names.length > 0 && placed) {
    return {
      ...common, type: "value", min: -0.5, max: names.length - 0.5, splitLine: { show: false }, axisTick: { show: false },
      axisLabel: { color: look.ink, customValues: names.map((_, i) => i), formatter: (value) => names[value] ?? "" },
    };
  }
  if (names.length > 0) return { ...common, type: "category", data: names };
  const type = isLogarithmic(of) ? "log" : "value";
  return {
    ...common, type, logBase: doubles ? 2 : 10, scale: of.low === null || of.low === undefined,
    min: of.low ?? undefined, max: of.high ?? undefined, axisPointer: { label: { formatter: ({ value }) => brief(value) } },
    axisLabel: { ...common.axisLabel, formatter: grouped, showMinLabel: isRound(of.low), showMaxLabel: isRound(of.high) },
  };
}

/** Each series says which of the colours, dashes and symbols it has. */
function colourOf(series, look) {
  return series.role === "reference" ? look.faded : look.colours[(series.look ?? 0) % look.colours.length];
}

const shades = ["#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"];

/** How far a value lies along the scale of shades. */
function shadeOf(panel, value) {
  return isLogarithmic(panel.z) && value !== null ? Math.log(value) : value;
}

/** The values of the lightest and of the darkest cell. */
function scaleOf(panel, series) {
  const values = series.z.filter((value) => value !== null);
  return { min: panel.z.low ?? Math.min(...values), max: panel.z.high ?? Math.max(...values) };
}

/** @param panel as figure_json of render/figures/chart_data.cpp writes it, with marks */
export function optionOf(panel, description) {
  const look = theme(panel);
  const option = {
    animation: !calm.matches, animationDuration: 250, textStyle: { color: look.ink, fontFamily: look.font },
    aria: { enabled: true, label: { description } },
    grid: { left: 62, right: 24, top: 14, bottom: 52, containLabel: false },
    // Stands above the drawing (legendOf), where it wraps; this one keeps what is hidden.
    legend: { show: false, data: [] },
    tooltip: {
      trigger: "axis", axisPointer: { type: "line" }, confine: true, backgroundColor: look.paper,
      borderColor: look.line, textStyle: { color: look.ink }, valueFormatter: brief,
    },
    xAxis: axis(panel.x, look, 30, false, panel.series.every((s) => (s.x || []).every((x) => Number.isInteger(Math.log2(x))))), yAxis: axis(panel.y, look, 44, panel.series.some((s) => s.mark === "box")), series: [],
  };
  if ((panel.y.categories || []).length > 0) {
    // Names are wider than numbers.
    const longest = Math.max(...panel.y.categories.map((name) => name.length));
    option.yAxis.nameGap = 14 + 7 * longest;
    option.grid.left = 32 + 7 * longest;
  }
  for (const series of panel.series) {
    const place = series.look ?? 0;
    const colour = colourOf(series, look);
    const named = { name: series.name, color: colour };
    const points = (series.x || []).map((x, i) => [x, series.y ? series.y[i] : null]);
    if (series.name) option.legend.data.push(series.name);
    switch (series.mark) {
      case "line":
      case "steps":
        option.series.push({
          ...named, type: "line", data: points, step: series.mark === "steps" ? "end" : false, z: 2,
          symbol: symbols[place % symbols.length], symbolSize: 6, showSymbol: points.length <= 60,
          lineStyle: { type: series.role === "reference" ? "dashed" : dashes[place % dashes.length],
            width: series.role === "highlight" ? 3 : 2 },
        });
        break;
      case "points":
        if (series.low) option.series.push(errorBars(series, colour));
        if (series.y) {
          option.series.push({ ...named, type: "scatter", data: points, z: 4,
            ...(series.role === "highlight"
              ? { symbol: "circle", symbolSize: 13, itemStyle: { color: "transparent", borderColor: colour, borderWidth: 3.5 } }
              : { symbol: symbols[place % symbols.length], symbolSize: 8 }) });
        }
        break;
      case "bars":
        option.series.push({ ...named, type: "bar", barMaxWidth: 32, barCategoryGap: "12%", data: points });
        if (series.low) option.series.push(errorBars(series, look.ink));
        break;
      case "band":
        option.series.push(polygon(series, colour));
        break;
      case "box":
        option.series.push(boxes(series, named, look));
        break;
      case "cells": {
        const seriesIndex = option.series.length, { min, max } = scaleOf(panel, series);
        option.series.push(cells(series, panel));
        option.tooltip.trigger = "item";
        option.visualMap = { show: false, seriesIndex, dimension: 2, min: shadeOf(panel, min), max: shadeOf(panel, max), inRange: { color: shades } };
        break;
      }
      case "vertical":
        option.series.push(lines(series, look, "x", colour, panel));
        break;
      case "horizontal":
        option.series.push(lines(series, look, "y", colour, panel));
        break;
      case "text":
        option.series.push({
          ...named, type: "scatter", data: points, symbolSize: 0.1, silent: true, z: 5, tooltip: { show: false },
          label: { show: true, position: "top", color: look.word, textBorderColor: look.halo, textBorderWidth: 3, formatter: ({ dataIndex }) => series.labels[dataIndex] },
        });
        break;
      default:
        throw new Error(`unknown mark ${series.mark}`);
    }
  }
  option.legend.data = [...new Set(option.legend.data)];
  return option;
}

const svgPaths = {
  circle: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", rect: "M-3.5 -3.5h7v7h-7z", triangle: "M0 -4.5L4.5 3.5H-4.5z",
  diamond: "M0 -5L4.5 0L0 5L-4.5 0z",
};

/** A small picture of how a series looks. */
function swatch(series, look) {
  const colour = colourOf(series, look), place = series.look ?? 0;
  const part = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const picture = part("svg", { width: 26, height: 14, viewBox: "-13 -7 26 14", "aria-hidden": "true" });
  const symbol = (name) => {
    const full = name.replace(/^empty(.)/, (_, first) => first.toLowerCase());
    picture.append(part("path", { d: svgPaths[full], fill: full === name ? colour : look.paper, stroke: colour, "stroke-width": full === name ? 0 : 2 }));
  };
  if (series.mark === "cells") {
    picture.setAttribute("width", 72);
    picture.setAttribute("viewBox", "0 0 72 14");
    shades.forEach((shade, i) => picture.append(part("rect", { x: (i * 72) / shades.length, y: 1, width: 72 / shades.length + 0.5, height: 12, fill: shade })));
    picture.append(part("rect", { x: 0.5, y: 1, width: 71, height: 12, fill: "none", stroke: look.faded }));
  } else if (series.mark === "band" || (series.mark === "box" && series.role === "reference")) {
    picture.append(part("rect", { x: -12, y: -6, width: 24, height: 12, fill: colour, "fill-opacity": 0.22, stroke: colour, "stroke-opacity": 0.6 }));
  } else if (series.mark === "bars" || series.mark === "box") {
    const framed = series.role === "highlight";
    const rectangle = (attributes) => picture.append(part("rect", { x: -10.5, y: -4.5, width: 21, height: 9, ...attributes }));
    if (framed) rectangle({ fill: "none", stroke: "#ffffff", "stroke-width": 5 });
    rectangle(framed ? { fill: "none", stroke: "#1b1f24", "stroke-width": 2.5 } : { fill: colour });
  } else {
    if (series.mark !== "points") {
      const dash = series.role === "reference" ? "dashed" : dashes[place % dashes.length];
      const pattern = { solid: "none", dashed: "6 4", dotted: "2 3" }[dash] ?? dash.join(" ");
      picture.append(part("line", { x1: -13, x2: 13, y1: 0, y2: 0, stroke: colour, "stroke-width": 2, "stroke-dasharray": pattern }));
    }
    if (series.mark === "points" && series.role === "highlight") {
      picture.append(part("circle", { r: 5, fill: "none", stroke: colour, "stroke-width": 3 }));
    } else if (series.mark === "points" || (series.x || []).length <= 60) {
      symbol(symbols[place % symbols.length]);
    }
  }
  return picture;
}

/** What is drawn, above the drawing, where it wraps: a toolbar that hides and shows series. */
function legendOf(panel, toggle, hidden) {
  const look = theme(panel);
  const legend = document.createElement("div");
  legend.className = "legend";
  const named = new Map();
  panel.series.forEach((series) => {
    // Series that only mark a place have their names beside them.
    if (!series.name || ["vertical", "horizontal", "text"].includes(series.mark)) return;
    if (!named.has(series.name)) named.set(series.name, []);
    named.get(series.name).push(swatch(series, look));
    if (series.mark !== "cells") return;
    const { min, max } = scaleOf(panel, series);
    named.get(series.name).unshift(`${panel.z.label} ${brief(min)}`);
    named.get(series.name).push(panel.z.high === null || panel.z.high === undefined ? brief(max) : `${brief(max)} or more`);
  });
  const buttons = [];
  for (const [name, parts] of named) {
    const scale = parts.some((one) => typeof one === "string");
    const entry = document.createElement(scale ? "span" : "button");
    if (scale) {
      entry.append(...parts);
    } else {
      entry.type = "button";
      entry.append(...parts.slice(0, 2), name);
      entry.setAttribute("aria-pressed", String(!hidden.has(name)));
      entry.title = `hide or show ${name}`;
      entry.tabIndex = buttons.length === 0 ? 0 : -1;
      entry.addEventListener("click", () => {
        const shows = !toggle(name);
        entry.setAttribute("aria-pressed", String(shows));
      });
      buttons.push(entry);
    }
    legend.append(entry);
  }
  if (buttons.length > 0) {
    legend.setAttribute("role", "toolbar");
    legend.setAttribute("aria-label", "Series of this drawing");
    legend.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const at = buttons.indexOf(document.activeElement);
      const to = (at + step + buttons.length) % buttons.length;
      buttons.forEach((one, i) => { one.tabIndex = i === to ? 0 : -1; });
      buttons[to].focus();
      event.preventDefault();
    });
  }
  return legend;
}

/** A place for one panel; `draw` may be called again with other data. */
export class Drawing {
  constructor(place, height = 320) {
    this.legend = document.createElement("div");
    this.element = document.createElement("div");
    this.element.style.height = `${height}px`;
    place.append(this.legend, this.element);
    this.hidden = new Set();
    this.chart = init(this.element, null, { renderer: "svg" });
    drawings.add(this);
    new ResizeObserver(() => this.chart.resize()).observe(this.element);
  }

  draw(panel, description) {
    this.panel = panel;
    this.description = description;
    const option = optionOf(panel, description);
    option.legend.selected = Object.fromEntries([...this.hidden].map((name) => [name, false]));
    this.chart.setOption(option, { notMerge: true });
    this.element.setAttribute("role", "img");
    this.element.setAttribute("aria-label", description);
    // A legend that says the same stays, and with it the focus within it.
    const names = JSON.stringify([theme().ink, panel.z, panel.series.map(({ name, mark, role, look, z }) => [name, mark, role, look, z && scaleOf(panel, { z })])]);
    if (names === this.names) return;
    this.names = names;
    const legend = legendOf(panel, (name) => this.toggle(name), this.hidden);
    this.legend.replaceWith(legend);
    this.legend = legend;
  }

  /** @returns whether the series is hidden now */
  toggle(name) {
    const hides = !this.hidden.delete(name);
    if (hides) this.hidden.add(name);
    this.chart.dispatchAction({ type: "legendToggleSelect", name });
    return hides;
  }

  redraw() {
    if (this.panel) this.draw(this.panel, this.description);
  }

  /** Drawn for a page of paper, and then as wide as there is room on it. */
  toPaper() {
    const columns = Number(this.element.closest(".panels")?.style.getPropertyValue("--columns") ?? 1);
    const width = [620, 620, 330][columns] ?? 250, height = 265;
    this.height ??= this.element.style.height;
    this.redraw();
    this.chart.resize({ width, height, animation: { duration: 0 } });
    // Painted at once, since the next frame comes after the print.
    this.chart.getZr().flush();
    const svg = this.element.querySelector("svg");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.style.position = "static";
    for (let part = svg; part !== this.element.parentElement; part = part.parentElement) {
      Object.assign(part.style, { width: "100%", maxWidth: `${width}px`, height: "auto" });
    }
  }

  toScreen() {
    const svg = this.element.querySelector("svg");
    svg.removeAttribute("viewBox");
    svg.style.position = "absolute";
    for (let part = svg; part !== this.element.parentElement; part = part.parentElement) {
      Object.assign(part.style, { width: "", maxWidth: "", height: "" });
    }
    this.element.style.height = this.height;
    this.redraw();
    this.chart.resize({ width: "auto", height: "auto" });
  }
}

function redrawAll() {
  for (const drawing of drawings) drawing.redraw();
}
darkScreen.addEventListener("change", redrawAll);
addEventListener("beforeprint", () => drawings.forEach((drawing) => drawing.toPaper()));
addEventListener("afterprint", () => drawings.forEach((drawing) => drawing.toScreen()));

/** Puts charts to hover over in the place of the page's drawings. */
export function replaceDrawings(charts) {
  for (const chart of charts) {
    const place = document.querySelector(`[data-chart="${CSS.escape(chart.name)}"]`);
    place.replaceChildren();
    place.classList.toggle("panels", chart.columns > 1);
    place.style.setProperty("--columns", chart.columns);
    for (const panel of chart.panels) {
      const cell = document.createElement("div");
      place.append(cell);
      if (panel.title) {
        const title = document.createElement("p");
        title.className = "panel-title";
        title.textContent = panel.title;
        cell.append(title);
      }
      new Drawing(cell).draw(panel, chart.caption);
    }
    const details = place.parentElement.querySelector("details");
    if (details) details.open = false;
  }
}
