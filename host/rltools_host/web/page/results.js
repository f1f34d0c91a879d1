// The results of a run: its metrics, and its state beside those of other devices.
const FORMATS = [0, 1].map((digits) => new Intl.NumberFormat("en", { maximumFractionDigits: digits }));

export const number = (value, digits = 1) => (Number.isFinite(value) ? FORMATS[digits].format(value) : "–");

export function showMetrics(box, metrics, values) {
  if (!box.children.length) box.append(...metrics.map(metricRow));
  for (const [index, shown] of box.querySelectorAll("dd").entries()) {
    shown.textContent = Number.isFinite(values[index]) ? values[index].toPrecision(4) : "–";
  }
}

function metricRow({ name, description: sentence }) {
  const row = document.createElement("div"), term = document.createElement("dt");
  term.textContent = name.replaceAll("_", " ");
  row.title = sentence;
  row.append(term, document.createElement("dd"));
  return row;
}

/** Shows the table: the run's row, and those `known` of other devices; `isUsual`: the run's values are
 * the defaults but for seed and steps. */
export function showStates(box, { step, hash, device, values, known, isUsual }) {
  const steps = Math.min(step, values.steps); // a rollout may end beyond them
  const rows = [{ device, seed: values.seed, steps, hash, mine: true }];
  for (const each of known) rows.push({ ...each, device: each.devices.join(", ") });
  box.replaceChildren(...rows.map((row) => {
    const line = document.createElement("tr");
    for (const value of [row.device, row.seed, number(row.steps), row.hash]) {
      line.append(Object.assign(document.createElement("td"), { textContent: value }));
    }
    const isSame = isUsual && row.seed === values.seed && row.steps === steps && steps === values.steps;
    if (!row.mine && isSame) line.className = row.hash === hash ? "same" : "other";
    if (row.mine) line.dataset.hash = hash;
    return line;
  }));
}
