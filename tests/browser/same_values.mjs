import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { assert, openPage, run, withBrowser } from "./browser.mjs";

const samples = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "traces", "samples");

const tolerance = 1e-12;
/** Regrets and draft steps are differences of numbers of order one, so that what is smaller than this is known absolutely. */
const least = 1e-3;

/** Every value of `mine` stands in `theirs`, numbers to a tolerance. */
function requireSame(mine, theirs, place, to = tolerance) {
  if (typeof mine === "number" && typeof theirs === "number") {
    const error = Math.abs(mine - theirs);
    assert.ok(error <= to * Math.max(Math.abs(theirs), least), `${place}: ${mine}, but the program says ${theirs}`);
  } else if (mine !== null && typeof mine === "object") {
    assert.ok(theirs !== null && typeof theirs === "object", `${place}: ${theirs}`);
    if (Array.isArray(mine)) assert.equal(mine.length, theirs.length, place);
    for (const key of Object.keys(mine)) requireSame(mine[key], theirs[key], `${place}/${key}`, to);
  } else {
    assert.equal(mine, theirs, place);
  }
}

/** What differs between worlds that are drawn from a measurement and those from its intervals, which a page has: the
 * middle by a quarter of the interval's width, an end by half of it, and by what a thousand worlds leave open. */
const ofWidth = { value: 0.25, ci95: 0.5 }, ofThousand = 0.005;
/** Of rounds, which depend a little on how many drafts are accepted whole. */
const ofRounds = 5e-3;
/** The last gamma whose estimates are held against each other. */
const farthest = 8;
/** Of the shares of worlds, and of the expected regret: absolute, and of its size. */
const ofShares = 0.2, ofRegret = [0.02, 0.25];

function requireNear(mine, theirs, within, place) {
  assert.ok(Math.abs(mine - theirs) <= within, `${place}: ${mine}, but the program says ${theirs}`);
}

/** Estimates agree as far as the intervals behind their worlds do. */
function requireSimilarEstimate(mine, theirs, place) {
  const width = theirs.ci95 ? theirs.ci95[1] - theirs.ci95[0] : 0;
  requireNear(mine.value, theirs.value, ofWidth.value * width + ofThousand * theirs.value, `${place}/value`);
  [0, 1].forEach((end) => requireNear(mine.ci95?.[end] ?? mine.value, theirs.ci95?.[end] ?? theirs.value,
    ofWidth.ci95 * width + ofThousand * theirs.value, `${place}/ci95/${end}`));
}

/** The plans of one point: rounds are the same, and the gamma decided here loses no more by the program's worlds. */
function requireSimilarPoint(mine, theirs, place) {
  assert.equal(mine.rows.length, theirs.rows.length, place);
  // Far beyond what was measured, the ends of intervals are those of a few worlds.
  mine.rows.filter(({ gamma }) => gamma <= farthest).forEach((row, i) => {
    const there = theirs.rows[i], at = `${place}/gamma ${row.gamma}`;
    assert.equal(row.gamma, there.gamma);
    for (const key of ["round_steps", "draft_steps", "target_steps"]) requireSame(row[key], there[key], `${at}/${key}`, ofRounds);
    for (const key of ["tokens_per_step", "speedup"]) requireSimilarEstimate(row[key], there[key], `${at}/${key}`);
    requireNear(row.regret, there.regret, ofRegret[0] + ofRegret[1] * there.regret, `${at}/regret`);
    requireNear(row.share, there.share, ofShares, `${at}/share`);
  });
  const regret = theirs.rows.find((row) => row.gamma === mine.gamma).regret;
  assert.ok(regret <= Math.min(...theirs.rows.map((row) => row.regret)) + 0.01, `${place}: gamma ${mine.gamma} loses ${regret}`);
}

function requireSimilarPlan(mine, theirs, place) {
  assert.equal(mine.points.length, theirs.points.length, place);
  mine.points.forEach((point, i) => requireSimilarPoint(point, theirs.points[i], `${place}/points/${i}`));
  requireNear(mine.decision.speedup.share, theirs.decision.speedup.share, ofShares, `${place}/decision/speedup/share`);
  if (mine.points.length > 1) return;
  assert.equal(mine.decision.gamma, mine.points[0].gamma, place);
  requireSame(mine.decision.schedule.map(({ gamma }) => gamma), [mine.decision.gamma], place);
}

/** A decision says what the points say. */
function requireDecided({ decision, points }, place) {
  assert.equal(decision.text.length, 2, place);
  if (points.length > 1 || points[0].gamma === null) return;
  const best = points[0].rows.find((row) => row.gamma === points[0].gamma);
  assert.equal(decision.gamma, points[0].gamma, place);
  assert.equal(decision.verdict, points[0].verdict, place);
  requireSame(decision.speedup.share, points[0].share, place);
  if (best.speedup.value !== null) requireSame(decision.speedup.value, best.speedup.value, place);
}

const requests = [];
for (const alpha of ["0", "0.05", "0.3", "0.62", "0.8", "0.95", "0.999", "0.55:0.7", "0.7:0.9"]) {
  for (const c of [0, 0.05, 1]) requests.push({ alpha, c });
}
for (const verify_factor of ["1.3", "2:1.02,5:1.10,9:1.31"]) requests.push({ alpha: "0.7:0.8", c: 0.05, verify_factor, gamma: 3 });
requests.push({ alpha: "0.8", c: 0.05, max_gamma: 4, overhead: 0.1 }, { rejection: "1e-12", c: 1e-9 });
for (const [hardware, model, draft_model] of [["h100-sxm", "llama-3.1-70b", "llama-3.2-1b"],
  ["mi300x", "qwen3-32b", "qwen3-0.6b"], ["h200-sxm", "mixtral-8x7b", "llama-68m"]]) {
  for (const [batch, context] of [["8", "0"], ["1,16,256", "4096"]]) {
    requests.push({ alpha: "0.7:0.8", hardware, model, draft_model, batch, context, tensor_parallel_size: 4 });
  }
}
requests.push(
  { alpha: "0.75", hardware: "h200-sxm", model: "llama-3.1-8b", draft_kind: "ngram", batch: "1,64", gamma: 2 },
  { alpha: "0.75", hardware: "b200", model: "deepseek-v3", draft_kind: "mtp", batch: "4", tensor_parallel_size: 8 },
  { alpha: "0.7", hardware: "h100-sxm", model: "llama-3.1-8b", draft_model: "eagle3-llama-3.1-8b", draft_kind: "eagle" },
  { alpha: "0.8", c: 0.05, batch: "1,8" });

const questionKeys = ["batch", "context", "gamma", "max_gamma"];
const acceptanceKeys = ["alpha", "rejection"];

/** What the command line writes as text, as the page's planner takes it: planner::PlanRequest. */
function requestOf(words) {
  const request = { acceptance: {}, cost: {}, question: {} };
  const factor = (text) => (text.includes(":") ? text.split(",").map((point) => point.split(":").map(Number)).map(([tokens, its]) => ({ tokens, factor: its })) : Number(text));
  const typed = {
    alpha: (text) => (text.includes(":") ? text.split(":").map(Number) : Number(text)), rejection: Number,
    batch: (text) => text.split(",").map(Number), context: (text) => text.split(",").map(Number), verify_factor: factor,
  };
  for (const [key, value] of Object.entries(words)) {
    const part = questionKeys.includes(key) ? "question" : acceptanceKeys.includes(key) ? "acceptance" : "cost";
    request[part][key] = typed[key] ? typed[key](value) : value;
  }
  return request;
}

const option = (key) => `--${key.replaceAll("_", "-")}`;
const wordsOf = (request) => Object.entries(request).flatMap(([key, value]) => [option(key), String(value)]);

/** A report of `words`, beside which `questions` are asked of its own acceptance and files; `files` are the words that
 * name those, which the command line needs for each question. `agree` holds what must agree of two plans. */
async function requireSameAsReport(browser, scratch, words, files, questions, agree) {
  const file = join(scratch, "measured.html");
  run("report", ...words, "--output", file);
  const { page, quiet } = await openPage(browser, file);
  const { first, said, answers } = await page.evaluate(async (all) => {
    const { planner, view } = await window.specdec;
    const { acceptance, question, specs } = view.controls.start;
    return {
      first: view.answer.plan, said: document.querySelector("#planner-words p").innerText,
      answers: all.map((asked) => planner.plan({
        acceptance: asked.acceptance.alpha === undefined ? acceptance.words : asked.acceptance,
        cost: asked.cost.hardware === undefined ? asked.cost : { ...asked.cost, specs },
        question: { ...question, ...acceptance?.question, ...asked.question },
      })),
    };
  }, questions.map(requestOf));
  quiet();
  await page.close();

  // Untouched it says what the report says.
  const report = JSON.parse(run("plan", ...words, "--format", "json"));
  agree(first, report, words.join(" "));
  requireDecided(first, words.join(" "));
  assert.equal(said, first.decision.text[0]);
  if (agree !== requireSimilarPlan) assert.ok(run("plan", ...words).replace(/\s+/g, " ").includes(said), said);
  questions.forEach((question, i) => {
    const theirs = JSON.parse(run("plan", ...files, ...wordsOf(question), "--format", "json"));
    agree(answers[i].plan, theirs, `${files} ${wordsOf(question)}`);
    requireDecided(answers[i].plan, `${files} ${wordsOf(question)}`);
    for (const { code } of answers[i].warnings) assert.ok(theirs.warnings.some((warning) => warning.code === code), code);
  });
}

await withBrowser(async (browser, scratch) => {
  const file = join(scratch, "report.html");
  run("report", "--alpha", "0.7", "--c", "0.05", "--output", file);
  const { page, quiet } = await openPage(browser, file);
  const answers = await page.evaluate(async (all) => {
    const { planner } = await window.specdec;
    return all.map((request) => planner.plan(request));
  }, requests.map(requestOf));
  quiet();
  let numbers = 0;
  requests.forEach((request, i) => {
    const words = wordsOf(request);
    const theirs = JSON.parse(run("plan", ...words, "--format", "json"));
    const place = words.join(" ");
    requireSame(answers[i].plan, theirs, place);
    requireDecided(answers[i].plan, place);
    for (const { code } of answers[i].warnings) {
      assert.ok(theirs.warnings.some((warning) => warning.code === code), `${place}: ${code}`);
    }
    numbers += JSON.stringify(answers[i].plan).split(/[,\[{]/).length;
  });
  assert.ok(numbers > 10000);

  // The words, too, and what is refused.
  const said = run("plan", "--alpha", "0.7:0.8", "--c", "0.05").replace(/\s+/g, " ");
  const place = requests.findIndex((request) => request.verify_factor === undefined && request.alpha === "0.55:0.7" && request.c === 0.05);
  assert.ok(run("plan", "--alpha", "0.55:0.7", "--c", "0.05").replace(/\s+/g, " ").includes(answers[place].plan.decision.text[0]));
  assert.ok(!said.includes(answers[place].plan.decision.text[0]));
  const refused = await page.evaluate(async () => {
    const { planner } = await window.specdec;
    try {
      return planner.plan({ acceptance: { alpha: 1.2 }, cost: { c: 0.05 } });
    } catch (error) {
      return error.message;
    }
  });
  assert.equal(refused, "alpha is 1.2, but must be a number in [0, 1] or [low, high] with low <= high");

  // The heat map is the same function's.
  const { map } = await page.evaluate(async () => {
    const { planner } = await window.specdec;
    return { map: planner.map({ alphas: [0.5, 0.8], cs: [0.05, 0.2], cost: {} }) };
  });
  [0.05, 0.2].forEach((c, row) => [0.5, 0.8].forEach((alpha, column) => {
    const plan = JSON.parse(run("plan", "--alpha", String(alpha), "--c", String(c), "--format", "json"));
    assert.equal(map.gamma[row][column], plan.closed_form.best_gamma);
    requireSame(map.speedup[row][column], plan.closed_form.best_speedup, `map ${alpha} ${c}`);
  }));

  // What was measured: every gamma by replay; by the readings of counters; rates by position; benchmark runs. Of a
  // recording and of counters a page knows the intervals alone. Typed lengths and rates have
  // populations of their own there, which another library of mathematics resamples otherwise.
  const trace = join(scratch, "trace.safetensors");
  run("trace", "generate", "--output", trace, "--law", "logit-noise", "--alpha", "0.7", "--vocab", "30", "--sequences", "8",
    "--tokens", "60");
  const device = { hardware: "h100-sxm", model: "llama-3.1-70b", draft_model: "llama-3.2-1b", tensor_parallel_size: 4 };
  const asked = [];
  for (const c of [0, 0.1, 0.7]) {
    for (const gamma of [undefined, 1, 4]) asked.push(gamma === undefined ? { c } : { c, gamma });
  }
  for (const [batch, gamma] of [["1", 5], ["2,16", 0]]) asked.push({ ...device, batch, context: "1024", gamma });
  const counters = ["--counters", join(samples, "serving", "vllm_before.prom"), "--counters", join(samples, "serving", "vllm_after.prom")];
  for (const files of [["--trace", trace], counters, ["--acceptance-per-position", "0.8,0.5,0.3"], ["--acceptance-length", "1:1.7,3:2.4"]]) {
    const near = files[0] === "--acceptance-length" || files[0] === "--acceptance-per-position" ? asked.filter(({ gamma }) => !(gamma > 3)) : asked;
    await requireSameAsReport(browser, scratch, [...files, "--c", "0.05", "--gamma", "2"], files, near, requireSimilarPlan);
  }

  // Of a cost that was measured the page has the rounds of the first point, without their intervals.
  const bench = ["c1-plain", "c1-k3", "c8-plain", "c8-k3", "c8-k5"].flatMap((name) => ["--bench", join(samples, "bench", `${name}.json`)]);
  const logs = ["vllm_plain", "vllm_k4"].flatMap((name) => ["--cost", join(samples, "serving", `${name}.log`)]);
  for (const words of [bench, [...counters, ...logs]]) {
    const measured = join(scratch, "measured.html");
    run("report", ...words, "--output", measured);
    const { page: own, quiet: ownQuiet } = await openPage(browser, measured);
    const [first] = await own.evaluate(async () => (await window.specdec).view.answer.plan.points);
    ownQuiet();
    await own.close();
    const [theirs] = JSON.parse(run("plan", ...words, "--format", "json")).points;
    // The rounds and the acceptance are the middle of what was measured: a gamma that is decided by them is as good.
    const row = theirs.rows.find((one) => one.gamma === first.gamma);
    assert.ok(row.regret <= Math.min(...theirs.rows.map((one) => one.regret)) + ofRegret[0], `${words}: gamma ${first.gamma}`);
    const mine = first.rows.find((one) => one.gamma === first.gamma).speedup.value;
    requireNear(mine, row.speedup.value, ofWidth.value * (row.speedup.ci95[1] - row.speedup.ci95[0]) + ofRegret[0] * mine, words.join(" "));
  }

  // Hardware and models of the user's own.
  const hardware = join(scratch, "card.json"), model = join(scratch, "model");
  writeFileSync(hardware, JSON.stringify({ name: "card", memory_bytes: 48e9, memory_bandwidth_bytes_per_second: 864e9, peak_flops: { fp32: 91e12, bf16: 181e12, fp8: 362e12 } }));
  mkdirSync(model);
  writeFileSync(join(model, "config.json"), JSON.stringify({ model_type: "mixtral", hidden_size: 2048, intermediate_size: 4096,
    num_hidden_layers: 16, num_attention_heads: 16, num_key_value_heads: 4, vocab_size: 32000, num_local_experts: 8,
    num_experts_per_tok: 2, sliding_window: 4096, torch_dtype: "bfloat16" }));
  const own = ["--hardware", hardware, "--model", model];
  await requireSameAsReport(browser, scratch, ["--alpha", "0.7:0.8", ...own, "--draft-kind", "ngram", "--context", "2048"], [], [
    { alpha: "0.6", hardware, model, draft_model: "llama-68m", batch: "1,32", context: "8192" },
    { alpha: "0.6", hardware, model, draft_model: model, draft_weight_dtype: "fp8", kv_cache_dtype: "fp8", weight_dtype: "int4" },
    { alpha: "0.6", hardware: "l40s", model, draft_kind: "ngram", gamma: 3 }], requireSame);
  await requireSameAsReport(browser, scratch, ["--trace", trace, ...own, "--draft-model", model, "--draft-tensor-parallel-size", "1"],
    ["--trace", trace], [{ hardware, model, draft_model: "llama-68m", batch: "1,8" }], requireSimilarPlan);
});
