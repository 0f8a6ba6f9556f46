"use strict";
// Builds the page from the JSON beside it. Text goes in as text alone: nothing of it is
// ever parsed as HTML.
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const { releases, entries, changes, processes } = page;
  const [first, last] = [releases[0].version, releases.at(-1).version];

  const VERDICTS = {
    broken: ["X", "what is relied on is gone, moved or used otherwise"],
    review: ["?", "to review: a body computes something else"],
    "fixed-upstream": ["F", "upstream no longer needs it"],
    compatible: ["~", "changed, and what is relied on did not"],
    cosmetic: ["≈", "only comments, docstrings or formatting"],
    identical: ["=", "the same text"],
  };
  const NOTHING = ["·", "not for it, or nothing relied on"];
  const MARKS = {
    first: ["•", "there, with no release before"],
    same: ["=", "the same text"],
    changed: ["±", "lines added and removed"],
    moved: ["→", "the same text elsewhere"],
    new: ["+", "came"],
    gone: ["−", "went"],
    absent: ["∅", "not there"],
  };
  const STATES = {
    applied: "✓", provided: "✓", landed: "✓", obsolete: "✓", pending: "…", partial: "…",
    off: "○", reverted: "○",
  };
  const STANDING = {
    "to-port": "ours still has the old lines: port it",
    ported: "ours already has this",
    "by-hand": "ours differs here: port it by hand",
  };

  const byId = (id) => document.getElementById(id);

  // An element: attributes by name, `class` and `data-…` too; handlers as functions.
  function el(tag, given, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(given || {})) {
      if (typeof value === "function") made.addEventListener(name, value);
      else if (value === true) made.setAttribute(name, "");
      else if (value !== false && value != null) made.setAttribute(name, value);
    }
    made.append(...children.flat(Infinity).filter((one) => one != null && one !== false));
    return made;
  }
  const headings = (...words) =>
    el("thead", {}, el("tr", {}, words.map((word) => el("th", { scope: "col" }, word))));

  // A table that may be wider than the page: it scrolls, by keyboard too.
  const wide = (label, table) =>
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, table);

  const signOf = (verdict) => (VERDICTS[verdict] || NOTHING)[0];
  const verdictTag = (verdict) => el(
    "span", { class: `tag ${verdict || "nothing"}` }, `${signOf(verdict)} ${verdict || "none"}`);
  const stateText = (standing) => standing && el(
    "span", { class: standing.fault ? "state fault" : "state", title: standing.reason },
    `${standing.fault ? "✗" : STATES[standing.state] || "·"} ${standing.state}`);
  const legend = (id, signs) => byId(id).append(...Object.entries(signs).map(
    ([name, [sign, says]]) => el("li", {},
      el("span", { class: `tag ${id === "marks" ? `m-${name}` : name}` }, sign),
      ` ${says}`)));

  // Moving in a grid --------------------------------------------------------------
  // One button of a grid is in the order of Tab; the arrow keys go from there.

  function grid(table) {
    const rows = () => [...table.tBodies[0].rows].filter((row) => !row.hidden);
    const at = (row, column) => row && row.cells[column]?.querySelector("button");
    const take = (button) => {
      for (const one of table.querySelectorAll("button[tabindex='0']")) one.tabIndex = -1;
      button.tabIndex = 0;
    };
    table.refresh = () => {
      const kept = table.querySelector("tr:not([hidden]) button[tabindex='0']");
      const one = kept || table.querySelector("tbody tr:not([hidden]) button");
      if (one) take(one);
    };
    table.addEventListener("focusin", (event) => {
      if (event.target.matches("td button")) take(event.target);
    });
    table.addEventListener("keydown", (event) => {
      const cell = event.target.closest("td");
      if (!cell || event.altKey || event.metaKey) return;
      const there = rows();
      const y = there.indexOf(cell.parentElement);
      const width = cell.parentElement.cells.length;
      const along = (row, from, step) => {
        for (let x = from; x > 0 && x < width; x += step) if (at(row, x)) return at(row, x);
        return null;
      };
      const down = (from, step) => {
        for (let i = from; i >= 0 && i < there.length; i += step)
          if (at(there[i], cell.cellIndex)) return at(there[i], cell.cellIndex);
        return null;
      };
      const whole = event.ctrlKey;
      const found = {
        ArrowRight: () => along(cell.parentElement, cell.cellIndex + 1, 1),
        ArrowLeft: () => along(cell.parentElement, cell.cellIndex - 1, -1),
        ArrowDown: () => down(y + 1, 1),
        ArrowUp: () => down(y - 1, -1),
        Home: () => along(whole ? there[0] : cell.parentElement, 1, 1),
        End: () => along(whole ? there.at(-1) : cell.parentElement, width - 1, -1),
      }[event.key];
      if (!found) return;
      event.preventDefault();
      found()?.focus();
    });
    table.refresh();
    return table;
  }

  // Heat map ----------------------------------------------------------------------

  function heatMap() {
    const head = el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Gap"),
      releases.map((one) => el("th", { scope: "col", title: `against ${one.baseline}` },
        one.version))));
    const rows = entries.map((entry, number) => el("tr", { "data-entry": number },
      el("th", { scope: "row" }, el("a", {
        href: `#gap-${entry.id}`,
        click: (event) => follow(event, number),
      }, entry.id)),
      entry.cells.map((cell, i) => {
        const says = `${entry.id} at ${releases[i].version}: ` +
          `${cell.verdict || NOTHING[1]}${cell.changed ? ", changed" : ""}`;
        return el("td", {}, el("button", {
          type: "button", tabindex: -1, "aria-label": says, title: `${says}. ${cell.sentence}`,
          class: `${cell.verdict || "nothing"}${cell.changed ? " turn" : ""}`,
          "data-verdict": cell.verdict || "",
          click: (event) => openGap(number, i, event.currentTarget),
        }, signOf(cell.verdict)));
      })));
    return grid(el("table", { class: "grid", "aria-labelledby": "h-map" }, head,
      el("tbody", {}, rows)));
  }

  // Diffs -------------------------------------------------------------------------

  const KINDS = { "+": "plus", "-": "minus", "=": "ours", "@": "at" };
  function lines(label, texts, heads) {
    return el("pre", { tabindex: 0, role: "region", "aria-label": label },
      texts.map((text, i) => el("span",
        { class: i < heads ? "at" : KINDS[text[0]] || "" }, text || " ")));
  }
  function diffOf(change) {
    const found = [lines("Upstream’s diff", change.diff, 2)];
    if (!change.ours) return found;
    found.push(el("p", {}, `Seen from ours, ${change.ours}:`));
    change.hunks.forEach((hunk, i) => found.push(
      el("p", { class: "quiet" },
        `${i + 1} of ${change.hunks.length}: ${STANDING[hunk.standing]}`),
      lines("Upstream’s change and our lines", [
        ...hunk.old.map((line) => `-${line}`), ...hunk.new.map((line) => `+${line}`),
        ...hunk.ours.map((line, n) => `=${String(hunk.line + n).padStart(5)} ${line}`),
      ], 0)));
    return found;
  }
  function showDiff(title, change) {
    byId("diff-title").textContent = title;
    byId("diff-body").replaceChildren(...diffOf(change));
    byId("diff").showModal();
  }
  // Folded, and made when it is opened: there are many, and few are read.
  function folded(summary, make) {
    return el("details", {
      class: "more",
      toggle: (event) => {
        const mine = event.currentTarget;
        if (mine.open && mine.childElementCount === 1) mine.append(...make());
      },
    }, el("summary", {}, summary));
  }
  const counted = (change) => `+${change.added} −${change.removed}`;

  // Timelines ---------------------------------------------------------------------

  const name = (symbol) => symbol.slice(symbol.indexOf(":") + 1);
  function spotCell(symbol, spot, i) {
    if (!spot) return el("td", {}, el("span", { class: "sign nothing" }, NOTHING[0]));
    const [sign, says] = MARKS[spot.mark];
    const title = `${symbol} at ${releases[i].version}: ${says}` +
      (spot.place ? `, ${spot.place}` : "");
    if (spot.change == null)
      return el("td", {}, el("span", { class: `sign m-${spot.mark}`, title },
        el("span", { "aria-hidden": "true" }, sign), el("span", { class: "hide" }, says)));
    const change = changes[spot.change];
    const text = spot.mark === "changed" ? counted(change) : sign;
    const from = i ? releases[i - 1].version : "";
    return el("td", {}, el("button", {
      type: "button", tabindex: -1, title, class: `m-${spot.mark}`,
      "aria-label": `${name(symbol)} at ${releases[i].version}: ${says}, ` +
        `${counted(change)}; show the diff`,
      click: () => showDiff(`${symbol}, ${from} → ${releases[i].version}`, change),
    }, text));
  }
  // `rows`: things, each with what stands below its name.
  function timeline(label, rows) {
    const head = headings("What", ...releases.map((one) => one.version));
    const body = rows.map(({ thing, below, attributes }) => {
      const symbol = thing.candidates.at(-1);
      return el("tr", attributes, el("th", { scope: "row", title: thing.candidates.join(" or ") },
        name(symbol), el("small", {}, el("span", { class: "module" },
          symbol.slice(0, symbol.indexOf(":")), " · "), below)),
      thing.spots.map((spot, i) => spotCell(symbol, spot, i)));
    });
    return grid(el("table", { class: "grid", "aria-label": label }, head,
      el("tbody", {}, body)));
  }
  function allTargets() {
    const found = new Map();
    entries.forEach((entry, number) => {
      for (const thing of entry.things.filter((one) => one.is_target)) {
        const key = thing.candidates.join(" ");
        const known = found.get(key);
        if (!known) found.set(key, { thing: { ...thing }, of: [number] });
        else {
          known.of.push(number);
          known.thing.spots = known.thing.spots.map((spot, i) => spot || thing.spots[i]);
        }
      }
    });
    return [...found.values()].map(({ thing, of }) => ({
      thing, below: of.map((number) => entries[number].id).join(", "),
      attributes: {
        "data-of": of.join(" "),
        "data-changes": thing.spots.some(
          (spot) => spot && !["first", "same", "absent"].includes(spot.mark)),
      },
    }));
  }

  // A gap -------------------------------------------------------------------------

  // The releases at which a candidate is the one that is there, `0.27.1 to 0.30.0`.
  function spanOf(thing, candidate) {
    const there = releases.map((_, i) => thing?.spots[i]?.symbol === candidate);
    const spans = [];
    there.forEach((yes, i) => {
      if (yes && there[i - 1]) spans.at(-1)[1] = releases[i].version;
      else if (yes) spans.push([releases[i].version]);
    });
    return spans.map((span) => span.join(" to ")).join(", ");
  }

  function factsOf(entry) {
    const facts = [["Why", [entry.why]], ["Goes when", [entry.remove_when]], ...entry.facts];
    return el("dl", {}, facts.filter(([, lines]) => lines[0]).map(
      ([word, lines]) => [el("dt", {}, word), lines.map((one) => el("dd", {}, one))]));
  }

  function verdictsOf(entry, number) {
    const rows = entry.cells.map((cell, i) => {
      const more = cell.findings.slice(1).concat(
        cell.sentence === cell.findings[0]?.sentence ? [] : cell.findings.slice(0, 1));
      const tally = Object.entries(cell.counts).map(([kind, n]) => `${n} ${kind}`).join(", ");
      return el("tr", { id: `cell-${number}-${i}` },
        el("th", { scope: "row" }, releases[i].version),
        el("td", {}, verdictTag(cell.verdict)),
        el("td", {}, cell.sentence, placeOf(cell.findings[0]),
          more.length > 0 && folded(`${tally}: ${more.length} more`, () => [findingsOf(more)])));
    });
    return [el("h3", {}, "Verdict at each release"), wide(`Verdicts on ${entry.id}`,
      el("table", {}, headings("Release", "Verdict", "Why"), el("tbody", {}, rows)))];
  }
  function placeOf(finding) {
    if (!finding || !(finding.moved_to || finding.place)) return null;
    const at = finding.moved_to ? `now ${finding.moved_to}` : finding.place;
    return el("div", { class: "mono quiet" }, at);
  }
  const findingsOf = (findings) => el("ul", { class: "plain" }, findings.map((one) => el("li", {},
    verdictTag(one.verdict), " ", one.sentence, placeOf(one))));

  function turnsOf(entry) {
    const turns = entry.cells.flatMap((cell, i) => (cell.changed ? [i] : []));
    const made = turns.map((i) => {
      const [from, to] = [releases[i - 1].version, releases[i].version];
      const was = entry.cells[i - 1].verdict || "none";
      const seen = new Map(entry.things.filter((thing) => thing.spots[i]?.change != null)
        .map((thing) => [thing.spots[i].change, thing]));
      return [
        el("p", {}, el("strong", {}, `${from} → ${to}`), ` ${was} → ${entry.cells[i].verdict}`),
        seen.size ? [...seen].map(([change, thing]) => folded(
          `${thing.candidates.at(-1)} (${thing.how}) ${counted(changes[change])}`,
          () => diffOf(changes[change])))
          : el("p", { class: "quiet" }, "None of its text differs between these two: " +
            (releases[i].baseline === releases[i - 1].baseline ? "what is around it does."
              : `${to} is compared with ${releases[i].baseline}.`)),
      ];
    });
    return [el("h3", {}, "Upstream’s changes where the verdict changed"),
      made.length ? made : el("p", { class: "quiet" }, "It is the same at each release.")];
  }

  function patchesOf(entry) {
    if (!entry.patches.length) return [];
    const whole = releases.length > 1 ? `${first} to ${last}` : first;
    const rows = entry.patches.map((patch) => {
      const thing = entry.things.find((one) => one.is_target &&
        one.candidates.join() === patch.candidates.join());
      const candidates = patch.candidates.map((one) => {
        const span = spanOf(thing, one);
        return el("li", {}, el("code", {}, one),
          one === patch.chosen && el("strong", {}, " ← chosen here"),
          span !== whole && el("span", { class: "quiet" },
            span ? ` at ${span}` : " at none of these releases"));
      });
      return el("tr", {}, el("td", {}, el("ul", { class: "plain" }, candidates)),
        el("td", {}, `${patch.kind} with `, el("code", {}, patch.replacement)),
        el("td", {}, [patch.gate || "as the gap", ...patch.notes].join("; ")),
        el("td", {}, stateText(patch.here) || "", patch.here &&
          patch.here.reason !== entry.here?.reason &&
          el("div", { class: "quiet" }, patch.here.reason)));
    });
    return [el("h3", {}, "Targets"), wide(`Targets of ${entry.id}`, el("table", { class: "roomy" },
      headings("Target", "Patch", "Gate", "In a new process here"), el("tbody", {}, rows)))];
  }

  function probeOf(entry) {
    if (!entry.probe.length) return [];
    const word = entry.status === "landed" ? "Landed, as shows" : "No longer needed when";
    return [el("h3", {}, word), el("ul", {}, entry.probe.map((sign) => el("li", {}, sign.says,
      el("ul", { class: "plain" }, sign.conditions.map(
        (one) => el("li", {}, el("code", {}, one)))))))];
  }

  function standingOf(entry) {
    const rows = [["a new process here", entry.here], ...processes.map((one) => [
      `${one.role} ${one.pid}`, one.states[entry.id]])].filter(([, standing]) => standing);
    if (!rows.length) return [];
    return [el("h3", {}, "Where it stands"), wide(`Processes and ${entry.id}`, el("table", {},
      headings("Process", "State", "Reason"), el("tbody", {}, rows.map(([who, standing]) =>
        el("tr", {}, el("th", { scope: "row" }, who), el("td", {}, stateText(standing)),
          el("td", {}, standing.reason))))))];
  }

  function thingsOf(entry) {
    if (!entry.things.length) return [];
    const rows = entry.things.map((thing) => ({
      thing, below: thing.is_target ? `target, ${thing.how}` : thing.how, attributes: {} }));
    return [el("h3", {}, "All it relies on, release by release"),
      el("div", { class: "scroll" }, timeline(`What ${entry.id} relies on`, rows))];
  }

  function gapOf(entry, number) {
    const strip = el("span", { class: "run", "aria-hidden": "true" }, entry.cells.map(
      (cell) => el("span", { class: cell.verdict || "nothing" }, signOf(cell.verdict))));
    const sorts = [...new Set([entry.status, entry.kind])].join(" · ");
    return el("details", { class: "gap", id: `gap-${entry.id}`, "data-entry": number },
      el("summary", {}, el("strong", {}, entry.id), el("span", {}, entry.title),
        el("span", { class: "quiet" }, sorts), stateText(entry.here), strip),
      el("div", { class: "inside" }, factsOf(entry), verdictsOf(entry, number),
        turnsOf(entry), patchesOf(entry), standingOf(entry), probeOf(entry),
        thingsOf(entry)));
  }

  // Processes ---------------------------------------------------------------------

  function processesTable() {
    const mine = entries.map((entry, number) => [entry, number])
      .filter(([entry]) => entry.here || processes.some((one) => one.states[entry.id]));
    const silent = processes.filter((one) => one.problem).map((one) =>
      el("p", { class: "note" }, `Process ${one.pid} says nothing: ${one.problem}`));
    const spoke = processes.filter((one) => !one.problem);
    const said = spoke.length ? null
      : el("p", { class: "quiet" }, "No running process carries shims.");
    if (!mine.length) return [said, silent];
    const rows = mine.map(([entry, number]) => el("tr", { "data-entry": number },
      el("th", { scope: "row" }, entry.id),
      [entry.here, ...spoke.map((one) => one.states[entry.id])].map(
        (standing) => el("td", {}, stateText(standing) || "–"))));
    const head = headings("Gap", "a new process here", ...spoke.map(
      (one) => `${one.role} ${one.pid}, plan ${one.plan}`));
    return [said, silent, wide("States by process", el("table",
      { id: "states", "aria-labelledby": "h-processes" }, head, el("tbody", {}, rows)))];
  }

  // Opening and closing ---------------------------------------------------------------

  const gapAt = (number) => byId("gaps").children[number];
  let cameFrom = null;

  function openGap(number, release, from) {
    const gap = gapAt(number);
    gap.open = true;
    cameFrom = from;
    for (const row of document.querySelectorAll("tr.here")) row.classList.remove("here");
    if (release != null) byId(`cell-${number}-${release}`).classList.add("here");
    const summary = gap.querySelector("summary");
    summary.focus({ preventScroll: true });
    summary.scrollIntoView({ block: "start" });
  }
  // A browser that follows a link to a part of the page takes the focus away.
  function follow(event, number) {
    event.preventDefault();
    openGap(number, null, event.currentTarget);
    try {
      history.replaceState(null, "", event.currentTarget.getAttribute("href"));
    } catch { /* in a frame that has no address of its own */ }
  }
  function closeGap(gap) {
    gap.open = false;
    const number = gap.dataset.entry;
    const row = map.querySelector(`tr[data-entry="${number}"]`);
    const back = cameFrom?.closest("tr") === row ? cameFrom : row.querySelector("button");
    back.focus();
    back.scrollIntoView({ block: "nearest" });
  }
  function openNamed() {
    let id = location.hash.slice(1);
    try { id = decodeURIComponent(id); } catch { return; }
    const gap = byId(id);
    if (gap?.matches("details.gap:not([open])")) openGap(Number(gap.dataset.entry), null, null);
  }

  // Filters -----------------------------------------------------------------------

  const textOf = (entry) => [entry.id, entry.title, entry.why,
    ...entry.patches.flatMap((patch) => patch.candidates)].join("\n").toLowerCase();
  const texts = entries.map(textOf);
  const statesOf = (entry) => [entry.here, ...processes.map((one) => one.states[entry.id])]
    .filter(Boolean).map((one) => one.state);
  const pressed = () => [...byId("verdicts").querySelectorAll("[aria-pressed=true]")]
    .map((one) => one.value);

  function applyFilters() {
    const words = byId("text").value.trim().toLowerCase().split(/\s+/);
    const verdicts = pressed();
    const state = byId("state").value;
    const onlyChanges = byId("changed").checked;
    const shown = entries.map((entry, number) =>
      words.every((word) => texts[number].includes(word)) &&
      (!verdicts.length || entry.cells.some((cell) => verdicts.includes(cell.verdict))) &&
      (!state || statesOf(entry).includes(state)) &&
      (!onlyChanges || entry.cells.some((cell) => cell.changed)));
    for (const one of document.querySelectorAll("[data-entry]"))
      one.hidden = !shown[one.dataset.entry];
    for (const row of document.querySelectorAll("[data-of]"))
      row.hidden = !row.dataset.of.split(" ").some((number) => shown[number]) ||
        (onlyChanges && row.dataset.changes === undefined);
    for (const button of map.querySelectorAll("td button"))
      button.classList.toggle("dim",
        verdicts.length > 0 && !verdicts.includes(button.dataset.verdict));
    const count = shown.filter(Boolean).length;
    byId("count").textContent = `${count} of ${entries.length} gaps`;
    byId("none").hidden = count > 0;
    map.refresh();
    line.refresh();
  }

  function fillFilters() {
    const found = entries.flatMap((entry) => entry.cells.map((cell) => cell.verdict));
    for (const [verdict, [sign]] of Object.entries(VERDICTS))
      if (found.includes(verdict)) byId("verdicts").append(el("button", {
        type: "button", value: verdict, "aria-pressed": "false", class: `chip ${verdict}`,
        click: (event) => {
          const mine = event.currentTarget;
          mine.setAttribute("aria-pressed", String(mine.ariaPressed !== "true"));
          applyFilters();
        },
      }, `${sign} ${verdict}`));
    const states = [...new Set(entries.flatMap(statesOf))].sort();
    byId("state").append(...states.map((state) => el("option", { value: state }, state)));
    const form = byId("filters");
    form.addEventListener("input", applyFilters);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => {
      for (const one of byId("verdicts").children) one.setAttribute("aria-pressed", "false");
      setTimeout(applyFilters);  // the fields are empty only after this
    });
  }

  // Keys, theme, print ---------------------------------------------------------------

  function onKey(event) {
    if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey) return;
    const typing = event.target.matches("input[type=search], select");
    if (event.key === "Escape" && event.target.id === "text") {
      event.preventDefault();
      event.target.value = "";
      applyFilters();
      (map.querySelector("button[tabindex='0']") || event.target).focus();
    } else if (event.key === "Escape") {
      const gap = event.target.closest("details.gap[open]");
      if (gap) closeGap(gap);
    } else if (event.key === "/" && !typing) {
      event.preventDefault();
      byId("text").focus();
      byId("text").select();
    } else if (event.key === "?" && !typing) {
      byId("help").showModal();
    }
  }

  // Kept in this page alone: nothing is stored.
  function turnTheme() {
    const themes = ["system", "dark", "light"];
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "system") + 1) % 3];
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    byId("theme").textContent = `Theme: ${next}`;
  }

  function openForPrint() {
    const closed = [...document.querySelectorAll("details.gap:not([open])")];
    for (const gap of closed) gap.open = true;
    addEventListener("afterprint", () => closed.forEach((gap) => { gap.open = false; }),
      { once: true });
  }
  const setAll = (open) => {
    for (const gap of byId("gaps").children) if (!gap.hidden) gap.open = open;
  };

  // The page ----------------------------------------------------------------------

  document.title = `${page.package} ${first} to ${last} · ascend-shims`;
  document.querySelector("h1").textContent = `Gaps of ${page.package} ${first} to ${last}`;
  byId("about").textContent =
    [page.where && `here: ${page.where}`, `ascend-shims ${page.toolkit}`, page.made]
      .filter(Boolean).join(" · ");
  const notes = [...page.notes,
    ...releases.flatMap((one) => one.notes.map((note) => `${one.version}: ${note}`))];
  byId("notes").append(...notes.map((note) => el("p", { class: "note" }, note)));
  const map = heatMap();
  byId("map").append(map);
  legend("legend", { ...VERDICTS, nothing: NOTHING, turn: ["▌", "another verdict than before"] });
  byId("processes").append(...processesTable().flat().filter(Boolean));
  byId("gaps").append(...entries.map(gapOf));
  const line = timeline("Timeline of the targets", allTargets());
  byId("line").append(line);
  legend("marks", MARKS);
  fillFilters();
  applyFilters();
  byId("theme").addEventListener("click", turnTheme);
  byId("ask").addEventListener("click", () => byId("help").showModal());
  byId("open").addEventListener("click", () => setAll(true));
  byId("close").addEventListener("click", () => setAll(false));
  addEventListener("keydown", onKey);
  addEventListener("hashchange", openNamed);
  addEventListener("beforeprint", openForPrint);
  openNamed();
})();
