"use strict";
// Filters and comparison of the table of runs; the address's fragment keeps the filters while the page is loaded again.
{
  const form = document.querySelector("form"), rows = [...document.querySelectorAll("tbody tr")];
  const filter = () => {
    const asked = new URLSearchParams(new FormData(form));
    const words = (asked.get("text") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word)) ||
        ["kind", "state"].some((name) => asked.get(name) && row.dataset[name] !== asked.get(name));
    }
    const n = rows.filter((row) => !row.hidden).length;
    form.querySelector("[role=status]").textContent = `${n} of ${rows.length} runs`;
    history.replaceState(null, "", `#${asked}`);
  };
  const compare = (reference) => {
    for (const old of document.querySelectorAll(".difference")) old.remove();
    for (const row of rows) {
      row.classList.toggle("reference", row === reference);
      if (row === reference) continue;
      const theirs = reference.querySelectorAll(".metric");
      row.querySelectorAll(".metric").forEach((cell, i) => {
        if (cell.dataset.value === "" || theirs[i].dataset.value === "") return;
        const by = Number(cell.dataset.value) - Number(theirs[i].dataset.value);
        const note = document.createElement("small");
        note.className = "difference";
        note.textContent = `${by < 0 ? "\u2212" : "+"}${Math.abs(by).toFixed(2).replace(/^0/, "")}`;
        cell.append(note);
      });
    }
  };
  if (form) {
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
      if (form.elements.namedItem(name)) form.elements.namedItem(name).value = value;
    }
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", filter);
    document.querySelector("tbody").addEventListener("change", ({ target }) => compare(target.closest("tr")));
    filter();
  }
  // What runs is looked at again, unless somebody is comparing.
  const again = () => {
    if (!document.querySelector("[name=reference]:checked") && document.activeElement?.name !== "text") location.reload();
  };
  if (document.body.dataset.running === "yes") setInterval(again, 5000);
}
