// The interactive part of a report: figures to hover over, and a planner that recomputes with the project's own code.
import { Drawing, brief, replaceDrawings } from "./charts.js";
import { loadPlanner } from "./compute.js";
import { Controls, element } from "./controls.js";

/* global ECHARTS_VERSION */

const json = (id) => JSON.parse(document.getElementById(id).textContent);
const batches = [1, 2, 4, 8, 16, 32, 64, 128, 256];

const gammaAxis = { label: "gamma (drafted tokens per step)", low: 0, high: null };
const speedupAxis = { label: "speedup over plain decoding", low: null, high: null };
const batchAxis = { label: "batch (sequences decoded together)", scale: "logarithmic", low: null };
const plainDecoding = { name: "plain decoding", mark: "horizontal", role: "reference", y: [1] };

const intervalWords = "95% interval";

/** The value of an estimate; of several alternatives the middle between its bounds, as figures of the command line draw it. */
const middle = ({ value, bounds }) => value ?? (bounds[0] + bounds[1]) / 2;

/** {rows, best, near, used}: what the charts and the table show of a plan's first point. */
function shown(plan) {
  const [point] = plan.points;
  const near = point.near_optimal_gammas;
  const used = point.deployed?.gamma;
  const last = Math.max(8, point.gamma + 6, (used ?? 0) + 1);
  const plain = point.seconds_per_output_token?.baseline;
  const row = (one) => ({
    gamma: one.gamma, tokens: middle(one.tokens_per_step), tokensInterval: one.tokens_per_step.ci95,
    tokensBounds: one.tokens_per_step.bounds, speedup: middle(one.speedup), interval: one.speedup.ci95,
    speedupBounds: one.speedup.bounds, operations: one.operations_factor, memory: one.memory_access_factor,
    regret: one.regret, share: one.share, steps: one.round_steps, seconds: one.round_seconds, drafting: one.draft_seconds,
    perToken: plain === undefined ? null : plain / middle(one.speedup), bound: one.bound,
  });
  return {
    rows: point.rows.filter((one) => one.gamma <= last).map(row), best: point.gamma, used,
    near: near.length ? [near[0], near[near.length - 1]] : null,
  };
}

/** The lines of a plan's decision: what to do, and how sure it is. */
const wordsOf = (plan) => plan.decision.text.filter((line) => line !== "");

/** The intervals of rows; of what is exact the value of `of`. */
function band(name, x, rows, key, of) {
  if (!rows.some((row) => row[key])) return [];
  const end = (which) => rows.map((row) => row[key]?.[which] ?? row[of]);
  return [{ name, mark: "band", role: "data", look: 0, x, low: end(0), high: end(1) }];
}

function gammaPanel({ rows, best, near, used }) {
  const x = rows.map((row) => row.gamma);
  const last = x[x.length - 1];
  const series = [];
  const all = rows.flatMap((row) => [row.speedup, ...(row.interval ?? [])]);
  if (near) {
    series.push({
      name: "near-best", mark: "box", role: "reference", x_low: [near[0] - 0.5], x_high: [Math.min(near[1], last) + 0.5],
      low: [Math.min(1, ...all)], high: [Math.max(1, ...all)],
    });
  }
  series.push(plainDecoding, ...band(intervalWords, x, rows, "interval", "speedup"));
  series.push({ name: "speedup", mark: "line", role: "data", look: 0, x, y: rows.map((row) => row.speedup) });
  const bestRow = rows.find((row) => row.gamma === best);
  if (bestRow) series.push({ name: "recommended", mark: "points", role: "highlight", look: 1, x: [best], y: [bestRow.speedup] });
  if (used !== undefined) series.push({ name: "in use", mark: "vertical", role: "reference", x: [used] });
  return { title: "", x: { ...gammaAxis, high: last }, y: speedupAxis, series };
}

/** @param rate  {name, rows} of one rate beside what was measured, or null */
function tokensPanel({ rows, best }, rate) {
  const x = rows.map((row) => row.gamma);
  const tokens = rows.map((row) => row.tokens);
  const series = band(intervalWords, x, rows, "tokensInterval", "tokens");
  series.push({ name: rate ? "as measured" : "tokens per step", mark: "line", role: "data", look: 0, x, y: tokens });
  if (rate) {
    series.push({ name: rate.name, mark: "line", role: "data", look: 2, x, y: x.map((gamma) => rate.rows.find((row) => row.gamma === gamma)?.tokens ?? null) });
  }
  const place = x.indexOf(best);
  if (place >= 0) series.push({ name: "recommended", mark: "points", role: "highlight", look: 1, x: [best], y: [tokens[place]] });
  return { title: "", x: { ...gammaAxis, high: x[x.length - 1] }, y: { label: "tokens per step of the target", low: 1 }, series };
}

function batchPanel(plan) {
  // Nothing is known of a point that nothing prices.
  const points = plan.points.filter((point) => point.gamma !== null);
  const x = points.map((point) => point.batch);
  const rows = points.map((point) => point.rows.find((row) => row.gamma === point.gamma).speedup)
    .map((speedup) => ({ speedup: middle(speedup), interval: speedup.ci95 }));
  const series = [plainDecoding, ...band(`recommended gamma, ${intervalWords}`, x, rows, "interval", "speedup"), {
    name: "recommended gamma", mark: "line", role: "data", look: 0, x, y: rows.map((row) => row.speedup),
  }, {
    name: "", mark: "text", role: "data", look: 0, x, y: rows.map((row) => row.interval?.[1] ?? row.speedup),
    labels: points.map((point) => `γ ${point.gamma}`),
  }];
  const last = plan.crossover_batch;
  if (last !== null) series.push({ name: `plain decoding from ${last} on`, mark: "vertical", role: "reference", x: [last] });
  return { title: "", x: batchAxis, y: speedupAxis, series };
}

function timePanel(plan) {
  const points = plan.points.filter((point) => point.seconds_per_output_token !== null);
  const x = points.map((point) => point.batch);
  const milliseconds = (kind) => points.map((point) => 1000 * point.seconds_per_output_token[kind]);
  return {
    title: "", x: batchAxis, y: { label: "time per output token (ms)", low: 0 }, series: [
      { name: "recommended gamma", mark: "line", role: "data", look: 0, x, y: milliseconds("speculative") },
      { name: "plain decoding", mark: "line", role: "reference", look: 0, x, y: milliseconds("baseline") },
    ],
  };
}

/** An end of an axis that shows c. */
function largestC(c) {
  const wanted = Math.max(0.2, Math.min(1, 2 * c), c);
  const unit = 10 ** Math.floor(Math.log10(wanted));
  return Math.ceil((10 * wanted) / unit - 1e-9) * unit / 10;
}

/** The same without what is in use. */
function withoutUse(request) {
  const { gamma, schedule, max_regret, ...question } = request.question;
  return { ...request, question };
}

function overCPanel(planner, request) {
  const { c: own } = request.cost, top = largestC(own);
  const x = [...new Set([...Array.from({ length: 25 }, (_, i) => Number(((i / 24) * top).toPrecision(6))), own])].sort((a, b) => a - b);
  const { gamma, speedup, ci95 } = planner.overC({ request: withoutUse(request), cs: x });
  const rows = speedup.map((one, i) => ({ speedup: one, interval: ci95[i] }));
  // As many gammas as there is room for.
  const changes = [];
  x.forEach((c, i) => {
    const before = changes.length ? x[changes[changes.length - 1]] : 0;
    if (gamma[i] !== null && gamma[i] !== gamma[i - 1] && c - before > top / 14) changes.push(i);
  });
  const series = [plainDecoding, ...band(`recommended gamma, ${intervalWords}`, x, rows, "interval", "speedup")];
  series.push({ name: "recommended gamma", mark: "line", role: "data", look: 0, x, y: speedup }, {
    name: "", mark: "text", role: "data", look: 0, x: changes.map((i) => x[i]), y: changes.map((i) => speedup[i]),
    labels: changes.map((i) => `γ ${gamma[i]}`),
  }, { name: "your c", mark: "vertical", role: "reference", x: [own] });
  return { title: "", x: { label: "c, draft step / target step", low: 0, high: top }, y: speedupAxis, series };
}

/** The heat map's cells, which stay while c does not leave the range shown. */
function cellsOf(planner, cost, top) {
  const alphas = Array.from({ length: 41 }, (_, i) => i / 40);
  const cs = Array.from({ length: 31 }, (_, i) => (i / 30) * top);
  alphas[40] = 0.99;
  cs[0] = top / 300;
  const { gamma, speedup } = planner.map({ alphas, cs, cost, max_gamma: 64 });
  const cell = { name: "best speedup", mark: "cells", role: "data", x: [], y: [], z: [], labels: [] };
  cs.forEach((c, row) => alphas.forEach((alpha, column) => {
    cell.x.push(column / 40);
    cell.y.push((row / 30) * top);
    cell.z.push(speedup[row][column]);
    cell.labels.push(`best gamma ${gamma[row][column]}`);
  }));
  return cell;
}

/** @param kept  {key, cell} of the last call */
function mapPanel(planner, request, low, high, kept) {
  const { c, ...cost } = request.cost, top = largestC(c);
  const key = JSON.stringify([top, cost]);
  if (kept.key !== key) Object.assign(kept, { key, cell: cellsOf(planner, cost, top) });
  const { cell } = kept;
  const width = Math.max(high - low, 0.01) / 2, middle = (low + high) / 2;
  const box = { name: "your values", mark: "box", role: "highlight", x_low: [middle - width],
    x_high: [middle + width], low: [c - top / 100], high: [c + top / 100] };
  return {
    title: "", x: { label: "acceptance rate alpha", low: 0, high: 1 },
    y: { label: "c, draft step / target step", low: 0, high: top },
    z: { label: "best speedup", low: 1, high: 4 }, series: [cell, box],
  };
}

/** The columns of the table that these rows have values for. */
function columnsOf(rows) {
  const percent = (share) => (share === 0 ? "0%" : `${(100 * share).toPrecision(2)}%`);
  const milliseconds = (seconds) => (1000 * seconds >= 1000 ? (1000 * seconds).toFixed(0) : (1000 * seconds).toPrecision(4));
  const bounded = (bounds) => (value, row) => (row[bounds] ?? [value]).map((end) => end.toFixed(3)).join(" to ");
  const columns = [
    ["Gamma", "gamma", String], ["Tokens per step", "tokens", bounded("tokensBounds")],
    ["Round, plain steps", "steps", (steps) => steps.toFixed(3)], ["Round, ms", "seconds", milliseconds],
    ["of it drafting, ms", "drafting", (seconds) => (seconds === 0 ? "0" : milliseconds(seconds))], ["ms per token", "perToken", milliseconds],
    ["Speedup", "speedup", bounded("speedupBounds")], [intervalWords, "interval", ([low, high]) => `${low.toFixed(2)} to ${high.toFixed(2)}`],
    ["Operations factor", "operations", (factor) => factor.toFixed(3)],
    ["Memory access factor", "memory", (factor) => factor.toFixed(3)],
    ["Regret", "regret", percent], ["Sure", "share", (share) => `${Math.round(100 * share)}%`], ["Target's pass bound by", "bound", (word) => word.replace("_", " ")],
  ];
  const known = columns.filter(([, key]) => rows.some((row) => row[key] !== null && row[key] !== undefined));
  // Times say what steps say.
  return known.filter(([, key]) => key !== "steps" || !known.some(([, other]) => other === "seconds"));
}

function table({ rows, best }) {
  const columns = columnsOf(rows);
  const kind = (key) => (key === "bound" ? undefined : "n");
  const body = rows.map((row) => element("tr", row.gamma === best ? { class: "mark" } : {}, ...columns.map(([, key, words]) => element(
    key === "gamma" ? "th" : "td", { class: kind(key), scope: key === "gamma" ? "row" : undefined },
    row[key] === null || row[key] === undefined ? "-" : words(row[key], row)))));
  return element("table", {}, element("caption", {}, "Every gamma; the recommended one is marked"),
    element("thead", {}, element("tr", {}, ...columns.map(([head, key]) => element("th", { scope: "col", class: kind(key) }, head)))),
    element("tbody", {}, ...body));
}

const figures = [
  ["gamma", "Speedup against gamma"], ["tokens", "Tokens per step against gamma"],
  ["over-c", "Speedup against c"],
  ["map", "Best speedup over alpha and c, for one rate"], ["batch", "Speedup against batch"],
  ["time", "Time per output token against batch"],
];

class PlannerView {
  constructor(root, planner, start) {
    this.planner = planner;
    this.start = start;
    this.controls = new Controls(start, planner.presets());
    this.words = element("div", { class: "answer", id: "planner-words", role: "status", "aria-live": "polite" });
    this.numbers = element("div", { class: "scroll", id: "planner-numbers", role: "region", tabindex: "0", "aria-label": "Every gamma with these values" });
    this.figures = new Map();
    const grid = this.grid = element("div", { class: "figures" });
    for (const [name, title] of figures) {
      const place = element("div", { id: `planner-figure-${name}` });
      const caption = element("figcaption", { hidden: true });
      const figure = element("figure", { hidden: true }, element("h3", {}, title), place, caption);
      grid.append(figure);
      this.figures.set(name, { figure, drawing: null, place, caption });
    }
    root.append(element("p", {}, start.about), this.controls.form, this.words, grid, this.numbers,
      element("p", { class: "about" }, `Recomputed in this page by specdec's own C++ code, compiled to WebAssembly. `
        + `Charts by Apache ECharts ${ECHARTS_VERSION}, Apache License 2.0 (www.apache.org/licenses/LICENSE-2.0).`));
    this.controls.addEventListener("change", () => this.schedule());
    this.update();
  }

  schedule() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.update());
  }

  draw(name, panel, description, caption = "") {
    const place = this.figures.get(name);
    place.figure.hidden = panel === null;
    if (panel === null) return;
    place.drawing ??= new Drawing(place.place);
    place.drawing.draw(panel, description);
    place.caption.textContent = caption;
    place.caption.hidden = caption === "";
  }

  /** What of the figures changes with the kinds of acceptance and cost is there before it is drawn. */
  arrange(byHardware, isRate) {
    const there = { "over-c": !byHardware && !isRate, map: !byHardware, batch: byHardware, time: byHardware };
    for (const [name, shows] of Object.entries(there)) this.figures.get(name).figure.hidden = !shows;
  }

  /** One rate beside the acceptance that was measured. */
  rateBeside(request) {
    const { alpha_low: low, alpha_high: high } = this.start;
    const middle = (low + high) / 2;
    const rate = { ...withoutUse(request), acceptance: { alpha: middle } };
    return { name: `one rate, ${brief(middle)}`, rows: shown(this.planner.plan(rate).plan).rows };
  }

  update() {
    clearTimeout(this.later);
    try {
      const request = this.controls.request();
      const isRate = request.acceptance.alpha !== undefined, byHardware = request.cost.hardware !== undefined;
      const answer = this.planner.plan(request);
      this.answer = answer;
      const view = shown(answer.plan);
      const words = wordsOf(answer.plan);
      this.say(words, answer.warnings);
      this.arrange(byHardware, isRate);
      this.draw("gamma", gammaPanel(view), words[0]);
      this.draw("tokens", tokensPanel(view, isRate ? null : this.rateBeside(request)), "Tokens per step against gamma");
      this.numbers.replaceChildren(table(view));
      // Drawings that take longer wait until the values stand still for a moment.
      this.later = setTimeout(() => this.sweep(request, view, byHardware, isRate), 60);
      this.age(false);
    } catch (error) {
      this.say([error.message], []);
      this.age(true);
    }
  }

  /** What stands there while there is no answer is of other values. */
  age(isOld) {
    for (const part of [this.grid, this.numbers]) part.classList.toggle("old", isOld);
  }

  sweep(request, view, byHardware, isRate) {
    try {
      if (!byHardware) {
        this.sweepRatio(request, isRate);
        return;
      }
      const list = [...new Set([...batches, ...this.start.batches, ...request.question.batch])].sort((a, b) => a - b);
      const asked = withoutUse(request);
      asked.question.batch = list;
      delete asked.question.max_num_seqs;
      const { plan } = this.planner.plan(asked);
      const words = wordsOf(plan);
      this.draw("batch", batchPanel(plan), words.join(" "), words[0]);
      this.draw("time", timePanel(plan), "Time per output token against batch, with the recommended gamma and without speculation");
    } catch (error) {
      this.say([error.message], []);
      this.age(true);
    }
  }

  sweepRatio(request, isRate) {
    const [low, high] = isRate ? request.acceptance.alpha : [this.start.alpha_low, this.start.alpha_high];
    if (!isRate) this.draw("over-c", overCPanel(this.planner, request), "Speedup of the recommended gamma against c");
    this.draw("map", mapPanel(this.planner, request, low, high, this.map ??= {}),
      "Heat map of the best speedup over the acceptance rate and c, with a box around the values above");
  }

  say(words, warnings) {
    const sentence = (message) => `${message[0].toUpperCase()}${message.slice(1)}.`;
    this.words.replaceChildren(...words.map((one) => element("p", {}, one)),
      ...warnings.map((one) => element("p", { class: "note" }, sentence(one.message))));
  }
}

/** A button beside each command and file, which copies it. */
function offerCopies() {
  for (const text of document.querySelectorAll("pre")) {
    const button = element("button", { type: "button", class: "copy" }, "Copy");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text.textContent.trimEnd());
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    text.before(button);
  }
}

async function begin() {
  if (navigator.clipboard) offerCopies();
  replaceDrawings(json("specdec-charts"));
  const planner = await loadPlanner();
  const view = new PlannerView(document.getElementById("planner-root"), planner, json("specdec-start"));
  return { planner, view, brief };
}

// Tests ask the page's planner through this.
window.specdec = begin();
