"use strict";
// Every text is put in as text, never as markup.
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const json = (id) => { const found = document.getElementById(id); return found ? JSON.parse(found.textContent) : null; };

  // Copying; where the clipboard is out of reach, as in some mail readers, by a selection.
  async function copy(text) {
    try { await navigator.clipboard.writeText(text); return true; } catch {
      const area = document.createElement("textarea");
      area.value = text; area.className = "unseen"; document.body.append(area); area.select();
      const done = document.execCommand("copy"); area.remove(); return done;
    }
  }
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const done = await copy(json(button.dataset.copy));
    const said = button.parentElement.querySelector("[data-copied]");
    if (said) said.textContent = done ? "Copied." : "Select the text and copy it.";
  });

  // The map: what is pointed at, or reached by keyboard, is written below.
  for (const kind of ["pointerover", "focusin"]) document.addEventListener(kind, (event) => {
    const place = event.target.closest?.(".map .place, .map a");
    const title = place?.querySelector("title");
    if (title) place.closest("figure").querySelector("[data-pointed]").textContent = title.textContent;
  });

  // The answers.
  let kept = null, cells = null;
  function data() {
    const source = document.getElementById("cells");
    if (source && source !== kept) { kept = source; cells = JSON.parse(source.textContent); }
    return cells;
  }
  function show(button) {
    const found = data(), [pair, candidate] = button.dataset.cell.split("-");
    const [output, extracted, score, times, refused] = found.answers[button.dataset.cell];
    const [input, expected] = found.pairs[pair], [rank, prompt] = found.prompts[candidate];
    const dialog = document.querySelector("dialog"), list = dialog.querySelector("dl");
    const rows = [
      [`Prompt ${rank}`, prompt], ["Input", input], ["Expected", expected.length ? expected.join("\n") : "not recorded"],
      [refused ? "Refused" : times > 1 ? `Answer, the last of ${times}` : "Answer", output === "" ? "(empty)" : output],
      ["Read as", extracted ?? "the whole answer"], [times > 1 ? "Score on average" : "Score", String(score)],
    ];
    list.replaceChildren(...rows.map(([name, text]) => {
      const row = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = name; dd.textContent = text; dd.className = "text"; row.append(dt, dd); return row;
    }));
    dialog.showModal();
  }
  function filter() {
    const table = document.querySelector(".answers table");
    if (!table) return;
    const found = data(), asked = (name) => document.querySelector(`[data-filter=${name}]`).value;
    const text = asked("text").trim().toLowerCase(), pairs = asked("pairs"), most = asked("prompts") === "all" ? Infinity : 8;
    all("[data-column]", table).forEach((cell) => { cell.hidden = Number(cell.dataset.column) >= most; });
    let shown = 0;
    for (const row of all("tr[data-pair]", table)) {
      const pair = row.dataset.pair, [input, expected] = found.pairs[pair];
      const answers = all("[data-cell]", row).filter((b) => !b.parentElement.hidden).map((b) => [b.parentElement.dataset.column, found.answers[b.dataset.cell]]);
      const at = (column) => answers.find(([c]) => c === column)?.[1][2];
      const scores = answers.map(([, a]) => a[2]);
      const fits = pairs === "all" || (pairs === "wrong" && at("0") <= 0.5) || (pairs === "disagree" && new Set(scores).size > 1) ||
        (pairs === "differ" && at("0") !== undefined && at("1") !== undefined && at("0") !== at("1"));
      const said = [input, ...expected, ...answers.flatMap(([, a]) => [a[0], a[1] ?? ""])].join("\n").toLowerCase();
      row.hidden = !(fits && said.includes(text));
      shown += row.hidden ? 0 : 1;
    }
    document.querySelector("[data-shown]").textContent = `${shown} of ${all("tr[data-pair]", table).length} pairs`;
    reachable();
  }
  // One cell is in the order of the Tab key, arrows move on from it.
  function reachable(button) {
    const visible = all(".answers [data-cell]").filter((b) => b.offsetParent !== null);
    visible.forEach((b) => { b.tabIndex = -1; });
    const chosen = button ?? visible[0];
    if (chosen) chosen.tabIndex = 0;
  }
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  document.addEventListener("keydown", (event) => {
    const button = event.target.closest?.("[data-cell]"), step = steps[event.key];
    if (!button || !step) return;
    event.preventDefault();
    const rows = all("tr[data-pair]").filter((row) => !row.hidden);
    let r = rows.indexOf(button.closest("tr")), c = Number(button.parentElement.dataset.column), next = null;
    while (!next) {
      r += step[0]; c += step[1];
      const cell = rows[r]?.querySelector(`[data-column="${c}"]`);
      if (!cell) return;
      if (!cell.hidden) next = cell.querySelector("[data-cell]");
    }
    reachable(next); next.focus();
  });
  document.addEventListener("click", (event) => { const button = event.target.closest("[data-cell]"); if (button) { reachable(button); show(button); } });
  document.addEventListener("input", (event) => { if (event.target.closest("[data-filter]")) filter(); });
  document.addEventListener("submit", (event) => { if (event.target.matches(".filters")) event.preventDefault(); });
  window.bestprompt = { filter };
  filter();
})();
