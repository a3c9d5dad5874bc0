"use strict";
// Everything goes in by textContent: judged text is hostile. The address's fragment is the page's whole state.
(async () => {
  const at = (id) => document.getElementById(id);
  const make = (tag, text = "", name = "") => {
    const element = document.createElement(tag);
    element.textContent = text;
    if (name) element.className = name;
    return element;
  };
  const unpack = async (element) => {
    const text = atob(element.textContent);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    element.remove();
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  const form = at("filters"), field = (name) => form.elements.namedItem(name);
  const data = await unpack(at("index"));
  const packed = [...document.querySelectorAll(".part")], parts = [];
  const part = (number) => (parts[number] ??= unpack(packed[number]));
  const texts = async (i) => (await part(Math.floor(i / data.per_part)))[i % data.per_part];
  const N = data.ids.length, PER_PAGE = 100;
  const STRATA = ["stratum", "subcategory", "cue", "construction"];
  const WORDS = { miss: "miss", alarm: "false alarm", caught: "caught", passed: "passed", unscored: "unscored", none: "not judged" };
  const GROUPS = { wrong: ["miss", "alarm"], right: ["caught", "passed"] };
  const place = new Map(data.ids.map((id, i) => [id, i]));
  const members = new Map();
  data.pairs.forEach((pair, i) => members.get(pair)?.push(i) ?? members.set(pair, [i]));

  const read = () => new URLSearchParams(location.hash.slice(1));
  const hash = (state, changes) => {
    const next = new URLSearchParams(state);
    for (const [name, value] of Object.entries(changes)) value ? next.set(name, value) : next.delete(name);
    return `#${next}`;
  };
  const monitorOf = (state) => {
    const name = state.get("monitor"), prompt = state.get("prompt");
    const found = data.monitors.findIndex((one) => (!name || one.name === name) && (!prompt || one.prompt === prompt));
    return data.monitors[name || prompt ? Math.max(found, 0) : data.first];
  };
  const isAtPoint = (state, monitor) => state.get("at") !== "own" && monitor.at_point !== null;
  const outcome = (i, monitor, atPoint) => {
    const code = (atPoint && monitor.at_point !== null ? monitor.at_point : monitor.own)[i];
    if (code === "-") return "none";
    if (code === "u") return "unscored";
    return data.labels[i] === "m" ? (code === "m" ? "caught" : "miss") : code === "m" ? "alarm" : "passed";
  };
  const ownId = (i) => data.own_ids[i] ?? "";
  const labelOf = (i) => (data.labels[i] === "m" ? "misbehavior" : "benign");
  const nameOf = (column, i) => data[column].names[data[column].of[i]];
  const scoreOf = (i, monitor) => (monitor.scores[i] === null ? "–" : monitor.scores[i].toFixed(3));
  const marked = (name) => make("span", WORDS[name], GROUPS.wrong.includes(name) ? "outcome wrong" : "outcome");

  const joined = (one) => [...one.request, ...one.response].map(([, pieces]) => pieces.join("")).join("\n");
  const containing = async (text) => {
    const all = await Promise.all(packed.map((_, number) => part(number)));
    const wanted = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "iu");
    const found = new Uint8Array(N);
    all.flat().forEach((one, i) => { found[i] = wanted.test(joined(one)) || wanted.test(data.ids[i]) || wanted.test(ownId(i)) ? 1 : 0; });
    return found;
  };
  let searched = "", hits = null;
  const selected = async (state) => {
    const monitor = monitorOf(state), atPoint = isAtPoint(state, monitor);
    const text = state.get("text") ?? "";
    if (text && text !== searched) {
      at("count").textContent = "searching …";
      hits = await containing(text);
      searched = text;
    }
    const verdict = state.get("verdict"), wanted = verdict && (GROUPS[verdict] ?? [verdict]);
    const label = state.get("label"), cell = state.get("cell"), source = state.get("source");
    const [key, ...rest] = (state.get("stratum") ?? "").split(":");
    const found = [], stratum = rest.join(":");
    const inCell = data.cell.names.map((name) => !cell || name === cell || name.startsWith(`${cell}/`));
    for (let i = 0; i < N; i++) {
      if (!inCell[data.cell.of[i]] || (label && labelOf(i) !== label) || (text && !hits[i])) continue;
      if ((source && nameOf("source", i) !== source) || (key && (!STRATA.includes(key) || nameOf(key, i) !== stratum))) continue;
      if (wanted && !wanted.includes(outcome(i, monitor, atPoint))) continue;
      found.push(i);
    }
    const order = state.get("order");
    if (order) {
      // How far on the wrong side; without a score last.
      const far = (i) => {
        const score = monitor.scores[i];
        if (score === null) return -1;
        return order === "worst" && data.labels[i] === "m" ? 1 - score : score;
      };
      found.sort((a, b) => far(b) - far(a) || a - b);
    }
    return found;
  };

  // To the next (1) or the previous (-1) page or sample, from the address as it is: keys are faster than a page is drawn.
  let step = () => {};

  const showList = (state, found) => {
    const monitor = monitorOf(state), atPoint = isAtPoint(state, monitor);
    const last = Math.max(Math.ceil(found.length / PER_PAGE), 1);
    const page = Math.min(Math.max(Number(state.get("page")) || 1, 1), last);
    const [back, middle, forth] = at("list").querySelector("nav").children;
    middle.textContent = `page ${page} of ${last}`;
    back.disabled = page === 1;
    forth.disabled = page === last;
    step = (by) => {
      const to = Math.max(Number(read().get("page")) || 1, 1) + by;
      if (1 <= to && to <= last) location.hash = hash(read(), { page: to > 1 ? to : "" });
    };
    const rows = found.slice((page - 1) * PER_PAGE, page * PER_PAGE).map((i) => {
      const row = make("li"), link = make("a");
      link.href = hash(state, { sample: data.ids[i] });
      link.append(marked(outcome(i, monitor, atPoint)), make("span", scoreOf(i, monitor), "score"), make("span", labelOf(i)),
        make("bdi", ownId(i) || data.ids[i], "id"),
        make("span", nameOf("cell", i), "cell"), make("bdi", data.excerpts[i], "excerpt"));
      row.append(link);
      return row;
    });
    at("list").querySelector("ol").replaceChildren(...rows);
  };

  const blocks = (found, more, ranges = []) => {
    const shown = found.map(([tag, pieces], number) => {
      const block = make("pre");
      block.dir = "auto";
      block.append(make("b", `[${tag}]`));
      const quoted = pieces.map((_, i) => ranges.some(([of, from, to]) => of === number && from <= i && i < to));
      pieces.forEach((piece, i) => block.append(quoted[i] ? make("mark", piece) : piece));
      return block;
    });
    if (more) shown.push(make("p", `… ${more.toLocaleString("en")} more characters`, "soft"));
    return shown;
  };
  const folded = (title, inner, isLong) => {
    const box = make("details");
    box.open = !isLong;
    box.append(make("summary", title), ...inner);
    return box;
  };
  const size = (found) => found.reduce((sum, [, pieces]) => sum + pieces.join("").length, 0);
  const article = (title, i, one, said, monitor, atPoint) => {
    const box = make("article", "", title === "this answer" ? "this" : "");
    const name = outcome(i, monitor, atPoint), line = make("p");
    line.append(marked(name), `, score ${scoreOf(i, monitor)}`);
    if (said?.reason) line.append(`: ${said.reason} ${said.detail ?? ""}`);
    box.append(make("h3", `${title}: ${labelOf(i)}`), line, ...blocks(one.response, one.response_more, said?.marks));
    if (said?.hidden) box.append(make("p", `${said.hidden} quoted passages are outside what is shown.`, "soft"));
    if (said?.lost) {
      const quotes = make("ul");
      quotes.append(...said.lost.map((quote) => { const item = make("li"); item.append(make("bdi", quote)); return item; }));
      box.append(make("p", "Quotes not located in the response:"), quotes);
    }
    return box;
  };
  const row = (state, number, i, other, mine, theirs) => {
    const one = data.monitors[number], found = make("tr", "", one === monitorOf(state) ? "chosen" : "");
    const cell = (tag, label, ...inner) => {
      const it = make(tag);
      it.dataset.label = label;
      it.append(...inner);
      found.append(it);
    };
    const link = make("a", `${one.name}, ${one.prompt}`);
    link.href = hash(state, { monitor: one.name, prompt: one.prompt });
    const head = make("th");
    head.scope = "row";
    head.append(link);
    found.append(head);
    const atPoint = state.get("at") !== "own";
    const verdict = (j) => [marked(outcome(j, one, atPoint)), ` ${scoreOf(j, one)}`];
    cell("td", "this answer", ...verdict(i));
    if (other !== undefined) cell("td", "counterpart", ...verdict(other));
    const said = [mine.said[number]?.answer, mine.said[number]?.category, mine.said[number]?.severity].filter(Boolean);
    cell("td", "said of this answer", make("bdi", said.join(" · ") || "–"));
    return found;
  };
  const showSample = async (state, found, i) => {
    step = (by) => {
      const to = found[found.indexOf(place.get(read().get("sample"))) + by];
      if (to !== undefined) location.hash = hash(read(), { sample: data.ids[to] });
    };
    const monitor = monitorOf(state), atPoint = isAtPoint(state, monitor), number = data.monitors.indexOf(monitor);
    const others = members.get(data.pairs[i]).filter((j) => j !== i);
    const other = others.find((j) => data.labels[j] !== data.labels[i]) ?? others[0];
    const mine = await texts(i), theirs = other === undefined ? null : await texts(other);
    const box = at("sample"), here = found.indexOf(i);
    const [list, back, middle, forth] = box.querySelector("nav").children;
    list.href = hash(state, { sample: "", page: here < PER_PAGE ? "" : Math.floor(here / PER_PAGE) + 1 });
    middle.textContent = here < 0 ? "not among the filtered" : `${(here + 1).toLocaleString("en")} of ${found.length.toLocaleString("en")}`;
    back.disabled = here <= 0;
    forth.disabled = here < 0 ? !found.length : here === found.length - 1;
    box.querySelector("h2").replaceChildren(marked(outcome(i, monitor, atPoint)), ` · ${nameOf("cell", i)}`);
    const facts = [["monitor", `${monitor.name}, ${monitor.prompt} prompt`], ["source", nameOf("source", i)],
      ...STRATA.map((key) => [key, nameOf(key, i)]), ["own id", ownId(i)], ["id", data.ids[i]]].filter(([, value]) => value);
    box.querySelector("dl").replaceChildren(...facts.flatMap(([name, value]) => {
      const shown = make("dd");
      shown.append(make("bdi", value));
      return [make("dt", name), shown];
    }));
    const isSame = theirs && JSON.stringify(mine.request) === JSON.stringify(theirs.request);
    const request = (one, title) => folded(title, blocks(one.request, one.request_more), size(one.request) > 1500);
    box.querySelector(".request").replaceChildren(request(mine, theirs ? (isSame ? "request, of both" : "request") : "request"),
      ...(theirs && !isSame ? [request(theirs, "the counterpart's request")] : []));
    box.querySelector(".pair").replaceChildren(article("this answer", i, mine, mine.said[number], monitor, atPoint),
      ...(theirs ? [article("counterpart", other, theirs, theirs.said[number], monitor, atPoint)] : []));
    const heads = ["monitor", "this answer", ...(theirs ? ["counterpart"] : []), "said of this answer"];
    const head = make("tr");
    head.append(...heads.map((text) => { const it = make("th", text); it.scope = "col"; return it; }));
    box.querySelector("thead").replaceChildren(head);
    box.querySelector("tbody").replaceChildren(...data.monitors.map((_, k) => row(state, k, i, other, mine, theirs)));
  };

  const fill = (state) => {
    const monitor = monitorOf(state);
    field("monitor").value = String(data.monitors.indexOf(monitor));
    for (const name of ["at", "verdict", "label", "cell", "source", "stratum", "order"]) field(name).value = state.get(name) ?? "";
    if (document.activeElement !== field("text")) field("text").value = state.get("text") ?? "";
    form.querySelector("[data-for=at]").hidden = monitor.at_point === null;
    at("point").textContent = isAtPoint(state, monitor) ? `Judged by the calibrated threshold: ${monitor.point}.` : "";
  };
  let turn = 0, shownSample = null;
  const show = async () => {
    const mine = ++turn, state = read(), i = place.get(state.get("sample"));
    fill(state);
    const found = await selected(state);
    if (mine !== turn) return; // the state has changed since
    if (i === undefined) showList(state, found); else await showSample(state, found, i);
    if (mine !== turn) return;
    const n = (count) => count.toLocaleString("en");
    const none = state.get("sample") && i === undefined ? `No sample ${state.get("sample")} here. ` : "";
    at("count").textContent = `${none}${n(found.length)} of ${n(N)} samples`;
    at("list").hidden = i !== undefined;
    at("sample").hidden = i === undefined;
    if (shownSample !== i && i !== undefined) {
      at("sample").querySelector("h2").focus({ preventScroll: true });
      at("sample").scrollIntoView();
    }
    shownSample = i;
    document.body.dataset.shown = String(mine); // for those who wait
  };
  const replace = (changes) => location.replace(hash(read(), { page: "", ...changes }));

  const option = (value, text) => Object.assign(make("option", text), { value });
  data.monitors.forEach((one, i) => field("monitor").append(option(String(i), `${one.name}, ${one.prompt} prompt`)));
  const categories = [...new Set(data.cell.names.map((name) => name.split("/")[0]))];
  for (const category of categories) {
    field("cell").append(option(category, category));
    for (const name of data.cell.names.filter((one) => one.startsWith(`${category}/`))) field("cell").append(option(name, name));
  }
  for (const name of [...data.source.names].sort()) field("source").append(option(name, name));
  for (const key of STRATA) {
    const group = Object.assign(make("optgroup"), { label: key });
    group.append(...data[key].names.filter(Boolean).sort().map((name) => option(`${key}:${name}`, name)));
    if (group.children.length) field("stratum").append(group);
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    const { name, prompt } = monitorOf(read());
    location.replace(hash(new URLSearchParams(), { monitor: name, prompt }));
  });
  form.addEventListener("change", ({ target }) => {
    if (target.name === "text") return;
    const one = data.monitors[Number(field("monitor").value)];
    replace(target.name === "monitor" ? { monitor: one.name, prompt: one.prompt } : { [target.name]: target.value });
  });
  let typing;
  field("text").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => replace({ text: field("text").value }), 250);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && !at("sample").hidden) { location.hash = at("sample").querySelector("nav a").hash; return; }
    if (["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) return;
    if (event.key === "/") { event.preventDefault(); field("text").focus(); }
    if (["j", "ArrowRight"].includes(event.key)) step(1);
    if (["k", "ArrowLeft"].includes(event.key)) step(-1);
  });
  for (const button of document.querySelectorAll("nav button")) {
    button.addEventListener("click", () => step(button.name === "forth" ? 1 : -1));
  }
  addEventListener("hashchange", show);
  at("problem").remove();
  form.hidden = false;
  await show();
})();
