"use strict";
// Without it the tables are complete, in the order of the page.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const isNumber = head.classList.contains("number");
    const key = (row) => {
      const cell = row.cells[column];
      if (!isNumber) return cell.textContent.trim();
      return cell.dataset.value === "" ? null : Number(cell.dataset.value);
    };
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const direction = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      const sign = direction === "ascending" ? 1 : -1;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", direction);
      const rows = [...body.rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null); // dashes last, both ways
        return sign * (isNumber ? a - b : a.localeCompare(b));
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
}
