// The interactive part of a report: figures to hover over, and a planner that recomputes with the project's own code.
import { Drawing, brief, replaceDrawings } from "./charts.js";
import { loadPlanner } from "./compute.js";
import { Controls, element } from "./controls.js";

/* global ECHARTS_VERSION */

const json = (id) => JSON.parse(document.getElementById(id).textContent);
const batches = [1, 2, 4, 8, 16, 32, 64, 128, 256];

const gammaAxis = { label: "gamma (drafted tokens per step)", low: 0, high: null };
const speedupAxis = { label: "speedup over plain decoding", low: null, high: null };
const plainDecoding = { name: "plain decoding", mark: "horizontal", role: "reference", y: [1] };

/** {rows, best, near, used}: what the charts and the table show, from an answer of either kind. */
function shown(answer, request) {
  const plan = answer.plan;
  if (!plan.points) {
    return {
      rows: plan.rows, best: plan.recommended.gamma, near: plan.near_optimal_ranges, used: request.gamma,
      tokens: "expected_tokens", interval: null, regret: "worst_regret",
    };
  }
  const point = plan.points[0];
  const near = point.near_optimal_gammas;
  const last = Math.max(8, point.optimal.gamma + 6, (request.gamma ?? 0) + 1);
  return {
    rows: point.rows.filter((row) => row.gamma <= last), best: point.optimal.gamma,
    near: near.length ? [[near[0], near[near.length - 1]]] : [], used: request.gamma, tokens: "tokens_per_step",
    interval: "speedup_ci95", regret: "regret",
  };
}

function gammaPanel({ rows, best, near, used, interval }) {
  const x = rows.map((row) => row.gamma);
  const last = x[x.length - 1];
  const series = [];
  const all = rows.flatMap((row) => [row.speedup, ...(interval ? row[interval] : [])]);
  if (near.length) {
    series.push({
      name: "near-best", mark: "box", role: "reference", x_low: near.map(([from]) => from - 0.5),
      x_high: near.map(([, to]) => Math.min(to ?? last, last) + 0.5), low: near.map(() => Math.min(1, ...all)),
      high: near.map(() => Math.max(1, ...all)),
    });
  }
  series.push(plainDecoding);
  if (interval && rows.some((row) => row[interval][0] < row[interval][1])) {
    series.push({ name: "95% interval", mark: "band", role: "data", colour: 0, x, low: rows.map((row) => row[interval][0]),
      high: rows.map((row) => row[interval][1]) });
  }
  series.push({ name: "speedup", mark: "line", role: "data", colour: 0, x, y: rows.map((row) => row.speedup) });
  const bestRow = rows.find((row) => row.gamma === best);
  if (bestRow) series.push({ name: "recommended", mark: "points", role: "highlight", colour: 1, x: [best], y: [bestRow.speedup] });
  if (used !== undefined) series.push({ name: "in use", mark: "vertical", role: "reference", x: [used] });
  return { title: "", x: { ...gammaAxis, high: last }, y: speedupAxis, series };
}

function batchPanel(plan) {
  const x = plan.points.map((point) => point.batch);
  const series = [plainDecoding, {
    name: "speedup of the best gamma", mark: "line", role: "data", colour: 0, x, y: plan.points.map((p) => p.optimal.speedup),
  }, {
    name: "", mark: "points", role: "data", colour: 0, x,
    low: plan.points.map((p) => p.optimal.speedup_estimate.ci95[0]), high: plan.points.map((p) => p.optimal.speedup_estimate.ci95[1]),
  }, {
    name: "", mark: "text", role: "data", colour: 0, x, y: plan.points.map((p) => p.optimal.speedup_estimate.ci95[1]),
    labels: plan.points.map((p) => `γ ${p.optimal.gamma}`),
  }];
  if (plan.crossover_batch !== null) {
    series.push({ name: "plain decoding is faster", mark: "vertical", role: "reference", x: [plan.crossover_batch] });
  }
  return { title: "", x: { label: "batch", logarithmic: true, logBase: 2, low: 1 }, y: speedupAxis, series };
}

function mapPanel(planner, request, low, high) {
  const alphas = Array.from({ length: 41 }, (_, i) => i / 40);
  const top = Math.max(0.2, Math.min(1, 2 * request.c));
  const cs = Array.from({ length: 31 }, (_, i) => (i / 30) * top);
  alphas[40] = 0.99;
  cs[0] = top / 300;
  const { gamma, speedup } = planner.map({ ...request, alpha: undefined, c: undefined, alphas, cs, max_gamma: 64 });
  const cell = { name: "best speedup", mark: "cells", role: "data", x: [], y: [], z: [], labels: [] };
  cs.forEach((c, row) => alphas.forEach((alpha, column) => {
    cell.x.push(column / 40);
    cell.y.push((row / 30) * top);
    cell.z.push(speedup[row][column]);
    cell.labels.push(`best gamma ${gamma[row][column]}`);
  }));
  const width = Math.max(high - low, 0.01) / 2, middle = (low + high) / 2;
  const box = { name: "your values", mark: "box", role: "highlight", x_low: [middle - width],
    x_high: [middle + width], low: [request.c - top / 100], high: [request.c + top / 100] };
  return {
    title: "", x: { label: "acceptance rate alpha", low: 0, high: 1 },
    y: { label: "c, draft step / target step", low: 0, high: top },
    z: { label: "speedup", low: 1, high: 4 }, series: [cell, box],
  };
}

function regretPanel(planner, request, low, high, best) {
  const from = Math.max(0, low - 0.15), to = Math.min(0.99, high + 0.15);
  const alphas = Array.from({ length: 61 }, (_, i) => from + ((to - from) * i) / 60);
  const last = Math.min(Math.max(best + 3, 4), 12);
  const { regret } = planner.regret({ ...request, alpha: undefined, gamma: undefined, alphas, last });
  const chosen = [...new Set([1, Math.max(1, best - 2), best, best + 2])].filter((gamma) => gamma <= last).slice(0, 4);
  const series = chosen.map((gamma, place) => ({
    name: `gamma ${gamma}${gamma === best ? ", recommended" : ""}`, mark: "line", colour: place,
    role: gamma === best ? "highlight" : "data", x: alphas, y: regret[gamma],
  }));
  const most = Math.max(...series.flatMap((one) => one.y));
  series.unshift({ name: "your interval", mark: "box", role: "reference", x_low: [low - 0.002], x_high: [high + 0.002], low: [0], high: [most] });
  return { title: "", x: { label: "acceptance rate alpha", low: from, high: to },
    y: { label: "share of the best speedup lost", low: 0 }, series };
}

function table(view) {
  const heads = ["Gamma", "Tokens per step", "Speedup"];
  if (view.interval) heads.push("95% interval");
  const percent = (share) => (share === null ? "-" : `${(100 * share).toPrecision(2)}%`);
  const hasRegret = view.rows.some((row) => row[view.regret] !== null);
  if (hasRegret) heads.push(view.interval ? "Regret" : "Largest regret");
  const cell = (name, content, scope) => element(name, { class: "n", scope }, content);
  const body = element("tbody", {}, ...view.rows.map((row) => {
    const cells = [cell("th", String(row.gamma), "row"), cell("td", row[view.tokens].toFixed(3)), cell("td", row.speedup.toFixed(3))];
    if (view.interval) cells.push(cell("td", `${row[view.interval][0].toFixed(2)} to ${row[view.interval][1].toFixed(2)}`));
    if (hasRegret) cells.push(cell("td", percent(row[view.regret])));
    return element("tr", row.gamma === view.best ? { class: "mark" } : {}, ...cells);
  }));
  return element("table", {}, element("caption", {}, "Every gamma with these values; the recommended one is marked"),
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col", class: "n" }, head)))), body);
}

class PlannerView {
  constructor(root, planner, start) {
    this.planner = planner;
    this.controls = new Controls(start, planner.presets());
    this.words = element("div", { class: "answer", id: "planner-words", role: "status", "aria-live": "polite" });
    this.numbers = element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Every gamma with these values" });
    this.figures = new Map();
    const figures = element("div", { class: "figures" });
    for (const [name, title] of [["gamma", "Speedup against gamma"], ["regret", "What a fixed gamma loses when alpha is another"],
      ["map", "Best speedup over alpha and c"], ["batch", "Speedup against batch"]]) {
      const place = element("div", { id: `planner-figure-${name}` });
      const figure = element("figure", {}, element("h3", {}, title), place);
      figures.append(figure);
      this.figures.set(name, { figure, drawing: null, place });
    }
    // The table stands beside the last figure, where there is room.
    figures.append(this.numbers);
    root.append(element("p", {}, start.about), this.controls.form, this.words, figures,
      element("p", { class: "about" }, `Recomputed in this page by specdec's own C++ code, compiled to WebAssembly. `
        + `Charts by Apache ECharts ${ECHARTS_VERSION}, Apache License 2.0 (www.apache.org/licenses/LICENSE-2.0).`));
    this.controls.addEventListener("change", () => this.schedule());
    this.update();
  }

  schedule() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.update());
  }

  draw(name, panel, description) {
    const place = this.figures.get(name);
    place.figure.hidden = panel === null;
    if (panel === null) return;
    place.drawing ??= new Drawing(place.place);
    place.drawing.draw(panel, description);
  }

  update() {
    try {
      const request = this.controls.request();
      const answer = this.planner.plan(request);
      this.answer = answer;
      const view = shown(answer, request);
      this.say(answer.words, answer.warnings);
      this.draw("gamma", gammaPanel(view), answer.words[0]);
      const [low, high] = request.alpha.split(":").map(Number).concat(Number(request.alpha)).slice(0, 2);
      const constant = request.c !== undefined && !answer.plan.points;
      const best = answer.plan.recommended ? answer.plan.recommended.gamma : null;
      this.draw("regret", constant && best !== null ? regretPanel(this.planner, request, low, high, best) : null,
        "Regret of several gammas against the acceptance rate");
      this.draw("map", constant ? mapPanel(this.planner, request, low, high) : null,
        "Heat map of the best speedup over the acceptance rate and c, with a box around the values above");
      this.numbers.replaceChildren(table(view));
      clearTimeout(this.later);
      this.figures.get("batch").figure.hidden = constant;
      if (!constant) this.later = setTimeout(() => this.sweep(request), 60);
    } catch (error) {
      this.say([error.message], []);
    }
  }

  /** Other batches, once the values stand still for a moment. */
  sweep(request) {
    try {
      const list = [...new Set([...batches, Number(request.batch)])].sort((a, b) => a - b);
      const answer = this.planner.plan({ ...request, gamma: undefined, batch: list.join(",") });
      this.draw("batch", batchPanel(answer.plan), answer.words.join(" "));
    } catch (error) {
      this.say([error.message], []);
    }
  }

  say(words, warnings) {
    const sentence = (message) => `${message[0].toUpperCase()}${message.slice(1)}.`;
    this.words.replaceChildren(...words.map((one) => element("p", {}, one)),
      ...warnings.map((one) => element("p", { class: "note" }, sentence(one.message))));
  }
}

async function begin() {
  replaceDrawings(json("specdec-charts"));
  const planner = await loadPlanner();
  const view = new PlannerView(document.getElementById("planner-root"), planner, json("specdec-start"));
  return { planner, view, brief };
}

// Tests ask the page's planner through this.
window.specdec = begin();
