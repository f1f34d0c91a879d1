// A field and a slider for each hyperparameter, from the description's list.
const POSITIONS = 1000; // of a slider
const MAX_LINEAR = 100; // a range that is wider, in defaults, has a logarithmic slider

/** Returns the shortest decimal text of a binary32 number. */
export function shortest(value) {
  for (let digits = 1; digits < 9; digits++) {
    const text = Number(value.toPrecision(digits));
    if (Math.fround(text) === Math.fround(value)) return text;
  }
  return value;
}

/** Returns whether it is a number of the parameter's type within its bounds. */
export function isWithin({ type, minimum, maximum }, value) {
  return value >= minimum && value <= maximum && (type !== "U32" || Number.isInteger(value));
}

function scaleOf({ minimum, maximum, default: usual }) {
  const isLinear = minimum < 0 || maximum - minimum <= MAX_LINEAR * Math.abs(usual);
  if (isLinear) {
    return {
      value: (position) => minimum + position * (maximum - minimum),
      position: (value) => (value - minimum) / (maximum - minimum),
    };
  }
  const lowest = minimum > 0 ? minimum : usual > 0 ? Math.min(usual, maximum) / 1000 : Math.min(1, maximum / 1000);
  const span = Math.log(maximum / lowest);
  return {
    value: (position) => (position <= 0 ? minimum : lowest * Math.exp(position * span)),
    position: (value) => (value <= lowest ? 0 : Math.log(value / lowest) / span),
  };
}

export class Settings {
  /** Calls changed(name) after a change by the user. `kind` tells the fields of several apart. */
  constructor(box, parameters, changed, kind = "set") {
    this.parameters = parameters;
    this.kind = kind;
    this.inputs = new Map();
    box.replaceChildren(...parameters.map((parameter) => this.#setting(parameter, changed)));
  }

  /** Returns the values by name; null where a field has no number within its bounds. */
  values() {
    const found = this.parameters.map(({ name }) => [name, this.value(name)]);
    return found.some(([, value]) => value === null) ? null : Object.fromEntries(found);
  }

  /** Returns the value; null where the field has no number within its bounds. */
  value(name) {
    const { field } = this.inputs.get(name);
    return field.checkValidity() && field.value !== "" ? Number(field.value) : null;
  }

  /** Returns the values that are not the defaults: of the fields, or of a run. */
  changes(values) {
    const found = this.parameters.map((each) => [each, values ? shortest(values[each.name]) : this.value(each.name)]);
    const changed = found.filter(([{ default: usual }, value]) => value !== null && value !== shortest(usual));
    return Object.fromEntries(changed.map(([{ name }, value]) => [name, value]));
  }

  /** Puts a number into a field; false where it is none within the bounds, and nothing changed. */
  set(name, value) {
    const parameter = this.parameters.find((each) => each.name === name);
    if (!parameter || !isWithin(parameter, value)) return false;
    const { field, show } = this.inputs.get(name);
    field.value = String(parameter.type === "U32" ? value : shortest(value));
    show();
    return true;
  }

  /** Marks the fields that differ from `values`, those in force; returns their names. */
  mark(values) {
    const names = [];
    for (const { name } of this.parameters) {
      const { field, box, notice } = this.inputs.get(name);
      const stated = this.value(name);
      const isOther = values !== null && (stated === null || Math.fround(stated) !== Math.fround(values[name]));
      if (isOther) names.push(name);
      box.classList.toggle("not-in-force", isOther);
      notice.hidden = !isOther;
      notice.textContent = isOther ? `Not in force: the run has ${shortest(values[name])}.` : "";
      field.setAttribute("aria-describedby", isOther ? `${notice.id} ${this.#about(name)}` : this.#about(name));
    }
    return names;
  }

  #about(name) {
    return `about-${this.kind}-${name}`;
  }

  setDefaults() {
    for (const { name, default: usual } of this.parameters) this.set(name, usual);
  }

  #setting(parameter, changed) {
    const { name, type, minimum, maximum, unit, description } = parameter;
    const scale = scaleOf(parameter);
    const element = (tag, attributes) => Object.assign(document.createElement(tag), attributes);
    const box = element("div", { className: "setting" });
    const label = element("label", { htmlFor: `${this.kind}-${name}`, textContent: unit ? `${name} (${unit})` : name });
    const field = element("input", { id: `${this.kind}-${name}`, type: "number", min: minimum, max: maximum, required: true });
    field.step = type === "U32" ? "1" : "any";
    const slider = element("input", { type: "range", min: 0, max: POSITIONS });
    slider.setAttribute("aria-label", `${name}, slider`);
    const bounds = [minimum, maximum].map((bound) => (type === "U32" ? bound : shortest(bound))).join(" to ");
    const note = element("p", { className: "note", id: this.#about(name), textContent: `${description} ${bounds}.` });
    const notice = element("p", { className: "notice", id: `notice-${this.kind}-${name}`, hidden: true });
    field.setAttribute("aria-describedby", note.id);
    const show = () => {
      slider.value = Math.round(scale.position(Number(field.value)) * POSITIONS);
      slider.setAttribute("aria-valuetext", `${field.value} ${unit}`.trim());
    };
    slider.addEventListener("input", () => {
      const value = Math.min(maximum, Math.max(minimum, scale.value(slider.value / POSITIONS)));
      field.value = type === "U32" ? Math.round(value) : Number(value.toPrecision(3));
      slider.setAttribute("aria-valuetext", `${field.value} ${unit}`.trim());
      changed(name);
    });
    field.addEventListener("input", () => {
      if (field.checkValidity()) show();
      changed(name);
    });
    this.inputs.set(name, { field, show, box, notice });
    this.set(name, parameter.default);
    box.append(label, field, slider, notice, note);
    slider.style.gridColumn = "1 / -1";
    return box;
  }
}
