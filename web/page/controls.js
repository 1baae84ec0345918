// The controls of a planner, and what is asked when they change.

const number = (id, label, options = {}) => ({ id, label, kind: "number", ...options });

/** Every control, in order. `when` says on which cost it depends. */
const controls = [
  number("alpha_low", "Acceptance rate, low end", { min: 0, max: 1, step: 0.005, slider: true }),
  number("alpha_high", "Acceptance rate, high end", { min: 0, max: 1, step: 0.005, slider: true }),
  { id: "lenience", label: "Lenience of the verification", kind: "select" },
  { id: "cost", label: "Cost from", kind: "select",
    choices: [["c", "a ratio, c"], ["hardware", "hardware and models"]] },
  number("c", "c, draft step / target step", { min: 0, max: 1, step: 0.005, slider: true, when: "c" }),
  { id: "hardware", label: "Hardware", kind: "select", when: "hardware" },
  { id: "model", label: "Target model", kind: "select", when: "hardware" },
  { id: "draft_kind", label: "Kind of draft", kind: "select", when: "hardware",
    choices: [["model", "draft model"], ["eagle", "EAGLE head"], ["mtp", "next-token module"],
      ["parallel", "parallel heads"], ["ngram", "n-grams"]] },
  { id: "draft_model", label: "Draft model", kind: "select", when: "hardware" },
  number("tensor_parallel_size", "Accelerators that share the target", { min: 1, max: 64, step: 1, when: "hardware" }),
  number("batch", "Batch", { min: 1, max: 4096, step: 1, when: "hardware" }),
  number("context", "Context, tokens per sequence", { min: 0, max: 1e6, step: 256, when: "hardware" }),
  number("gamma", "Gamma in use (may stay empty)", { min: 0, max: 32, step: 1, optional: true }),
];

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export { element };

function fill(select, choices) {
  select.replaceChildren(...choices.map(([value, label]) => element("option", { value }, label)));
}

/** The form, with `values()` and an event "change" whenever a value has changed. */
export class Controls extends EventTarget {
  constructor(start, presets) {
    super();
    this.start = start;
    this.inputs = new Map();
    this.form = element("form", { class: "controls no-print", "aria-label": "Values to try" });
    for (const control of controls) this.form.append(this.field(control));
    const reset = element("button", { type: "button", id: "planner-reset" }, "Back to the report's values");
    reset.addEventListener("click", () => this.reset());
    this.form.append(element("div", { class: "field" }, reset));
    this.form.addEventListener("submit", (event) => event.preventDefault());
    const named = (names) => names.map((name) => [name, name]);
    fill(this.inputs.get("hardware"), named(presets.hardware));
    fill(this.inputs.get("model"), named(presets.models));
    fill(this.inputs.get("draft_model"), named(presets.models));
    const leniences = start.lenience || [];
    fill(this.inputs.get("lenience"), [["1", "1, the strict rule"],
      ...leniences.map((row) => [String(row.lenience), `${row.lenience} (alpha ${Number(row.alpha.toPrecision(3))})`])]);
    this.inputs.get("lenience").disabled = leniences.length === 0;
    if (leniences.length === 0) this.hint("lenience", "Only a recording of whole distributions tells what it gains.");
    this.reset();
  }

  field(control) {
    const id = `planner-${control.id}`;
    const field = element("div", { class: "field", "data-when": control.when });
    field.append(element("label", { for: id }, control.label));
    let input;
    if (control.kind === "select") {
      input = element("select", { id, name: control.id });
      if (control.choices) fill(input, control.choices);
    } else {
      const { min, max, step } = control;
      input = element("input", { id, name: control.id, type: "number", min, max, step: "any", inputmode: "decimal" });
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

  reset() {
    const start = this.start;
    for (const id of ["alpha_low", "alpha_high", "c", "batch", "context", "gamma", "tensor_parallel_size", "cost",
      "hardware", "model", "draft_kind", "draft_model"]) this.set(id, start[id]);
    this.set("lenience", "1");
    this.changed("cost");
  }

  changed(id) {
    const value = (name) => Number(this.inputs.get(name).value);
    if (id === "alpha_low" && value("alpha_high") < value("alpha_low")) this.set("alpha_high", value("alpha_low"));
    if (id === "alpha_high" && value("alpha_low") > value("alpha_high")) this.set("alpha_low", value("alpha_high"));
    if (id === "lenience") {
      const row = (this.start.lenience || []).find((one) => String(one.lenience) === this.inputs.get("lenience").value);
      const interval = row ? row.interval : [this.start.alpha_low, this.start.alpha_high];
      this.set("alpha_low", interval[0]);
      this.set("alpha_high", interval[1]);
    }
    const cost = this.inputs.get("cost").value;
    for (const field of this.form.querySelectorAll("[data-when]")) field.hidden = field.dataset.when !== cost;
    const drafts = ["model", "eagle", "parallel"].includes(this.inputs.get("draft_kind").value);
    this.inputs.get("draft_model").closest(".field").hidden = cost !== "hardware" || !drafts;
    this.dispatchEvent(new Event("change"));
  }

  /** What the page's planner is asked; keys as in the inputs of `specdec plan`. */
  request() {
    const text = (id) => this.inputs.get(id).value.trim();
    const wanted = (id) => {
      if (text(id) === "") throw new Error(`${this.form.querySelector(`label[for="planner-${id}"]`).textContent}: a number is missing`);
      return text(id);
    };
    const low = wanted("alpha_low"), high = wanted("alpha_high");
    const request = { ...this.start.options, alpha: low === high ? low : `${low}:${high}` };
    if (text("gamma") !== "") request.gamma = Math.round(Number(text("gamma")));
    if (text("cost") === "c") {
      request.c = Number(wanted("c"));
      return request;
    }
    Object.assign(request, this.start.hardware_options, {
      hardware: text("hardware"), model: text("model"), draft_kind: text("draft_kind"), batch: wanted("batch"),
      context: wanted("context"), tensor_parallel_size: Math.round(Number(wanted("tensor_parallel_size"))),
    });
    const drafts = !this.inputs.get("draft_model").closest(".field").hidden;
    if (drafts) request.draft_model = text("draft_model");
    return request;
  }
}
