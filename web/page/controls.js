// The controls of a planner, and what is asked when they change.

const number = (id, label, options = {}) => ({ id, label, kind: "number", ...options });
const select = (id, label, options = {}) => ({ id, label, kind: "select", ...options });

const byHardware = (value) => value("cost") === "hardware";
const looksUp = (kind) => kind === "ngram" || kind === "suffix";
const hasDraft = (value) => byHardware(value) && !looksUp(value("draft_kind"));
const types = ["fp32", "fp16", "bf16", "fp8", "int8", "int4", "nvfp4", "mxfp4"].map((name) => [name, name]);

/** Every control, in order and by group; `when` says beside which values of others it means something. */
const groups = [
  ["Acceptance", [
    select("acceptance", "Acceptance", { wide: true, when: (value) => value("has_acceptance") }),
    number("alpha_low", "Acceptance rate, low end", { min: 0, max: 1, step: 0.005, slider: true, when: (value) => value("acceptance") === "rate" }),
    number("alpha_high", "Acceptance rate, high end", { min: 0, max: 1, step: 0.005, slider: true, when: (value) => value("acceptance") === "rate" }),
    select("lenience", "Lenience of the verification"),
  ]],
  ["Cost", [
    select("cost", "Cost from", { choices: [["c", "a ratio, c"], ["hardware", "hardware and models"]] }),
    number("c", "c, draft step / target step", { min: 0, max: 1, step: 0.005, slider: true, when: (value) => value("cost") === "c" }),
    select("hardware", "Hardware", { when: byHardware }),
    number("tensor_parallel_size", "Accelerators that share the target", { min: 1, max: 1024, step: 1, when: byHardware }),
    select("model", "Target model", { when: byHardware }),
    select("weight_dtype", "Weights of the target", { when: byHardware, choices: [["", "as its file says"], ...types] }),
    select("kv_cache_dtype", "Keys and values in the cache", { when: byHardware, choices: [["", "bf16, the usual"], ...types] }),
    select("draft_kind", "Kind of draft", { when: byHardware,
      choices: [["model", "draft model"], ["mirrored", "draft model, as llama.cpp runs it"], ["eagle", "EAGLE head"], ["mtp", "next-token module"],
        ["parallel", "parallel heads"], ["ngram", "n-grams"], ["suffix", "suffixes"]] }),
    select("draft_model", "Draft model", { when: hasDraft }),
    select("draft_weight_dtype", "Weights of the draft", { when: hasDraft, choices: [["", "as its file says"], ...types] }),
    number("draft_tensor_parallel_size", "Accelerators that share the draft", { min: 1, max: 1024, step: 1, when: hasDraft, empty: "as the target" }),
  ]],
  ["Question", [
    number("batch", "Batch, sequences", { min: 1, max: 4096, step: 1, when: byHardware }),
    number("context", "Context, tokens per sequence", { min: 0, max: 1e6, step: 256, when: byHardware }),
    number("gamma", "Gamma in use", { min: 0, max: 32, step: 1, empty: "none" }),
  ]],
];

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function fill(select, choices) {
  const chosen = select.value;
  select.replaceChildren(...choices.map(([value, label]) => element("option", { value }, label)));
  if (choices.some(([value]) => value === chosen)) select.value = chosen;
}

const fileName = (path) => path.replace(/\/+$/, "").split("/").pop();

/** Of a file of the user's. */
function ownName(path, name) {
  const file = fileName(path);
  return !name || file.startsWith(name) ? `${file} (your file)` : `${name} (${file})`;
}

/** The form, with `request()` and an event "change" whenever a value has changed. */
export class Controls extends EventTarget {
  constructor(start, presets) {
    super();
    this.start = start;
    this.inputs = new Map();
    this.fields = [];
    this.form = element("form", { class: "controls no-print", "aria-label": "Values to try" });
    for (const [legend, controls] of groups) {
      const group = element("fieldset", {}, element("legend", {}, legend));
      for (const control of controls) group.append(this.field(control));
      this.form.append(group);
    }
    const reset = element("button", { type: "button", id: "planner-reset" }, "Back to the report's values");
    reset.addEventListener("click", () => this.reset());
    this.form.lastChild.append(element("div", { class: "field last" }, reset));
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.offer(presets);
    this.reset();
  }

  /** Fills in what the report and the program's lists offer. */
  offer(presets) {
    const { start } = this;
    const listed = (names, own) => [
      ...Object.keys(own).map((path) => [path, ownName(path, own[path].name)]),
      ...names.map((name) => [name, name])];
    this.models = listed(presets.models, start.specs.models);
    fill(this.inputs.get("hardware"), listed(presets.hardware, start.specs.hardware));
    fill(this.inputs.get("model"), this.models);
    const law = start.acceptance;
    fill(this.inputs.get("acceptance"), [...(law ? [["report", law.label]] : []), ["rate", "one rate, the same at every draft"]]);
    this.strict = ["1", "1, the strict rule"];
    this.leniences = start.lenience.map((row) => [String(row.lenience), `${row.lenience}, alpha ${Number(row.alpha.toPrecision(3))}`]);
    fill(this.inputs.get("lenience"), [this.strict, ...this.leniences]);
    this.inputs.get("lenience").disabled = this.leniences.length === 0;
    this.hint("lenience", this.leniences.length === 0
      ? "What it gains is known from a recording of whole distributions alone."
      : "Other than 1: the rate that the recording gives it.");
  }

  field(control) {
    const id = `planner-${control.id}`;
    const field = element("div", { class: control.wide ? "field wide" : "field" });
    field.append(element("label", { for: id }, control.label));
    let input;
    if (control.kind === "select") {
      input = element("select", { id, name: control.id });
      if (control.choices) fill(input, control.choices);
    } else {
      const { min, max, step } = control;
      input = element("input", { id, name: control.id, type: "number", min, max, step, inputmode: "decimal", placeholder: control.empty });
      if (control.slider) {
        const slider = element("input", { type: "range", min, max, step, "aria-label": `${control.label}, slider`,
          id: `${id}-slider` });
        slider.addEventListener("input", () => { input.value = slider.value; this.changed(control.id); });
        input.addEventListener("input", () => { slider.value = input.value; });
        field.append(slider);
      }
    }
    input.addEventListener("input", () => this.changed(control.id));
    field.append(input, element("p", { class: "hint", id: `${id}-hint`, hidden: true }));
    this.inputs.set(control.id, input);
    this.fields.push({ control, field });
    return field;
  }

  hint(id, words) {
    const place = this.form.querySelector(`#planner-${id}-hint`);
    place.textContent = words;
    place.hidden = words === "";
    const input = this.inputs.get(id);
    if (words) input.setAttribute("aria-describedby", place.id);
    else input.removeAttribute("aria-describedby");
  }

  set(id, value) {
    const input = this.inputs.get(id);
    input.value = value ?? "";
    const slider = this.form.querySelector(`#planner-${id}-slider`);
    if (slider) slider.value = input.value;
  }

  text(id) {
    return this.inputs.get(id).value.trim();
  }

  reset() {
    const { start } = this;
    this.set("draft_kind", start.draft_kind);
    this.offerDrafts();
    for (const id of ["alpha_low", "alpha_high", "c", "batch", "context", "gamma", "tensor_parallel_size", "cost", "hardware",
      "model", "draft_model", "weight_dtype", "draft_weight_dtype", "kv_cache_dtype", "draft_tensor_parallel_size"]) {
      this.set(id, start[id]);
    }
    this.set("acceptance", start.acceptance ? "report" : "rate");
    this.strictAgain();
    this.changed("cost");
  }

  strictAgain() {
    fill(this.inputs.get("lenience"), [this.strict, ...this.leniences]);
    this.set("lenience", "1");
  }

  /** A next-token module is the target's own, or another model's. */
  offerDrafts() {
    const own = this.text("draft_kind") === "mtp" ? [["", "the target's own"]] : [];
    fill(this.inputs.get("draft_model"), [...own, ...this.models]);
    if (own.length > 0) this.set("draft_model", this.start.draft_kind === "mtp" ? this.start.draft_model : "");
    else if (this.text("draft_model") === "") this.set("draft_model", "llama-3.2-1b");
  }

  setRates([low, high]) {
    this.set("alpha_low", low);
    this.set("alpha_high", high);
  }

  changed(id) {
    const value = (name) => Number(this.text(name));
    if (id === "alpha_low" && value("alpha_high") < value("alpha_low")) this.set("alpha_high", this.text("alpha_low"));
    if (id === "alpha_high" && value("alpha_low") > value("alpha_high")) this.set("alpha_low", this.text("alpha_high"));
    if (id === "lenience") {
      const row = this.start.lenience.find((one) => String(one.lenience) === this.text("lenience"));
      this.setRates(row ? row.interval : [this.start.alpha_low, this.start.alpha_high]);
      this.set("acceptance", row ? "rate" : "report");
      fill(this.inputs.get("lenience"), [this.strict, ...this.leniences]);
    } else if (id === "acceptance") {
      if (this.text("acceptance") === "report") this.setRates([this.start.alpha_low, this.start.alpha_high]);
      this.strictAgain();
    } else if (id.startsWith("alpha_") && this.leniences.length > 0) {
      // Another rate is no longer that of a lenience.
      fill(this.inputs.get("lenience"), [["", "any: the rate is stated"], this.strict, ...this.leniences]);
      this.set("lenience", "");
    }
    if (id === "draft_kind") this.offerDrafts();
    const known = (name) => (name === "has_acceptance" ? Boolean(this.start.acceptance) : this.text(name));
    for (const { control, field } of this.fields) field.hidden = Boolean(control.when) && !control.when(known);
    this.dispatchEvent(new Event("change"));
  }

  /** What the page's planner is asked: a PlanRequest (planner/plan_request.hpp). */
  request() {
    const { start } = this;
    const wanted = (id) => {
      if (this.text(id) === "") throw new Error(`${this.form.querySelector(`label[for="planner-${id}"]`).textContent}: a number is missing`);
      return Number(this.text(id));
    };
    const whole = (id) => Math.round(wanted(id));
    const beside = start[this.text("cost") === "c" ? "with_c" : "with_hardware"];
    const cost = { ...beside.cost }, question = { ...start.question, ...beside.question };
    let acceptance;
    if (this.text("acceptance") === "report") {
      acceptance = start.acceptance.words;
      Object.assign(question, start.acceptance.question);
    } else {
      acceptance = { alpha: [wanted("alpha_low"), wanted("alpha_high")] };
    }
    if (this.text("gamma") !== "") {
      question.gamma = whole("gamma");
      delete question.schedule;
    } else if (!question.schedule) {
      delete question.max_regret;
    }
    if (this.text("cost") === "c") {
      cost.c = wanted("c");
      return { acceptance, cost, question };
    }
    Object.assign(question, { batch: [wanted("batch")], context: [wanted("context")] });
    Object.assign(cost, {
      specs: start.specs, hardware: this.text("hardware"), model: this.text("model"), draft_kind: this.text("draft_kind"),
      tensor_parallel_size: whole("tensor_parallel_size"),
    });
    const optional = ["weight_dtype", "kv_cache_dtype"];
    if (looksUp(cost.draft_kind)) delete cost.draft_launch_seconds;
    else optional.push("draft_model", "draft_weight_dtype");
    for (const id of optional) {
      if (this.text(id) !== "") cost[id] = this.text(id);
    }
    if (!looksUp(cost.draft_kind) && this.text("draft_tensor_parallel_size") !== "") {
      cost.draft_tensor_parallel_size = whole("draft_tensor_parallel_size");
    }
    return { acceptance, cost, question };
  }
}
