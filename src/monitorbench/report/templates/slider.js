"use strict";
// Text goes in by textContent alone; a score counts as flagged where it is greater than the threshold.
for (const root of document.querySelectorAll("#slider")) {
  const data = JSON.parse(root.querySelector("script").textContent);
  const input = (name) => root.querySelector(`[name="${name}"]`);
  const bytes = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  const read = (text, size, get) => {
    const view = new DataView(bytes(text).buffer);
    return Array.from({ length: view.byteLength / size }, (_, i) => view[get](i * size, true));
  };
  const sums = (counts) => {
    const found = [0];
    for (const one of counts) found.push(found[found.length - 1] + one);
    return found;
  };
  const unpack = (one) => {
    const counts = (text) => sums(read(text, one.bits / 8, `getUint${one.bits}`));
    return { ...one, values: read(one.values, 8, "getFloat64"), bad: counts(one.misbehavior), good: counts(one.benign) };
  };
  // How many distinct scores are at most `threshold`.
  const below = (values, threshold) => {
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] <= threshold) low = middle + 1; else high = middle;
    }
    return low;
  };
  // Wilson's interval; z of 95 %, and of 97.5 % for two that hold together.
  const Z95 = 1.959963984540054, Z975 = 2.241402727604947;
  const wilson = (k, n, z) => {
    if (!n) return null;
    const p = k / n, scale = 1 + z * z / n, centre = (p + z * z / (2 * n)) / scale;
    const half = z * Math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / scale;
    return [k === 0 ? 0 : centre - half, k === n ? 1 : centre + half];
  };
  const precision = (missed, alarms, pi) => {
    const right = pi * (1 - missed), wrong = (1 - pi) * alarms;
    return right + wrong > 0 ? right / (right + wrong) : null;
  };
  const rate = (value) => value === null ? "–" : value.toFixed(value >= 0.995 && value < 0.9995 ? 3 : 2).replace(/^0/, "").replace(/^1\.00$/, "1.0");
  const between = (bounds, write) => bounds && bounds[0] !== null && bounds[1] !== null ? ` [${write(bounds[0])}–${write(bounds[1])}]` : "";
  const amount = (value) => value >= 0.1 || value === 0 ? value.toFixed(2) : value.toPrecision(2);
  const show = (name, value, text) => {
    const place = root.querySelector(`[data-of="${name}"]`);
    place.dataset.value = value === null ? "" : String(value);
    place.textContent = text;
  };
  const curves = data.curves.map(() => null);
  let curve;

  const update = () => {
    const text = input("threshold").value;
    if (text === "") return;
    const at = below(curve.values, Number(text));
    const last = curve.values.length;
    input("position").value = String(at);
    input("position").setAttribute("aria-valuetext", text);
    const bad = curve.bad[last], good = curve.good[last];
    const missed = curve.bad[at], alarmed = good - curve.good[at];
    const mr = bad ? missed / bad : null, far = good ? alarmed / good : null;
    const pi = Number(input("base_rate").value);
    const miss = Number(input("cost_miss").value), alarm = Number(input("cost_alarm").value);
    const both = mr !== null && far !== null;
    show("miss_rate", mr, `${rate(mr)}${between(wilson(missed, bad, Z95), rate)} · ${missed} of ${bad}`);
    show("false_alarm_rate", far, `${rate(far)}${between(wilson(alarmed, good, Z95), rate)} · ${alarmed} of ${good}`);
    const right = both ? precision(mr, far, pi) : null;
    const misses = wilson(missed, bad, Z975), alarms = wilson(alarmed, good, Z975);
    const ends = both ? [precision(misses[1], alarms[1], pi), precision(misses[0], alarms[0], pi)] : null;
    show("precision", right, right === null ? "– nothing would be flagged" : rate(right) + between(ends, rate));
    const cost = both ? pi * mr * miss + (1 - pi) * far * alarm : null;
    show("expected_cost", cost, cost === null ? "–" : amount(cost));
    show("left_out", curve.n_without, `${curve.n_without} of ${bad + good + curve.n_without} have none and are left out`);
  };
  const setThreshold = (value) => {
    input("threshold").value = String(value);
    update();
  };
  const choose = (number) => {
    curves[number] ??= unpack(data.curves[number]);
    curve = curves[number];
    const n = curve.values.length, point = curve.point;
    input("position").max = String(n);
    const fixed = point && point.threshold !== null;
    const mark = root.querySelector(".point"), button = input("calibrated");
    mark.hidden = button.hidden = !fixed;
    root.querySelector(".calibrated span").textContent = point && !fixed ? point.text : "";
    if (fixed) {
      button.textContent = point.text;
      // A thumb's middle runs from half its width to half its width before the end.
      mark.style.left = `calc(.5rem + ${below(curve.values, point.threshold) / n} * (100% - 1rem))`;
    }
    setThreshold(fixed ? point.threshold : curve.values[n >> 1]);
  };
  data.curves.forEach((one, i) => {
    const option = document.createElement("option");
    option.value = String(i);
    option.textContent = one.name;
    input("curve").append(option);
  });
  for (const name of ["base_rate", "cost_miss", "cost_alarm"]) {
    input(name).value = String(data.stakes[name]);
    input(name).addEventListener("input", update);
  }
  input("threshold").addEventListener("input", update);
  input("curve").addEventListener("change", () => choose(Number(input("curve").value)));
  input("calibrated").addEventListener("click", () => setThreshold(curve.point.threshold));
  // Below the lowest score everything is flagged: scores are at least 0.
  input("position").addEventListener("input", () => {
    const at = Number(input("position").value);
    setThreshold(at ? curve.values[at - 1] : -1);
  });
  input("curve").value = String(data.first);
  choose(data.first);
  root.hidden = false;
}
