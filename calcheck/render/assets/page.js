(() => {
  "use strict";

  /* Tables that are sorted by a click on the head of a column. */

  const sortKey = (cell) => {
    const text = cell.textContent.trim();
    const number = Number.parseFloat(text.replace(/[[,]/g, ""));
    return Number.isNaN(number) ? text : number;
  };

  const compare = (one, other) => {
    if (typeof one === typeof other) return one < other ? -1 : Number(one > other);
    return typeof one === "number" ? -1 : 1;
  };

  const sortTable = (table, place, head) => {
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => [sortKey(row.cells[place]), row]);
    rows.sort(([one], [other]) => sign * compare(one, other));
    body.append(...rows.map(([, row]) => row));
  };

  const makeSortable = (table) => {
    Array.from(table.tHead.rows[0].cells).forEach((head, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sortTable(table, place, head));
      head.append(button);
    });
  };

  /* Limits of right models, as in calcheck/region_maps/limits.py. */

  const BINS = 20;
  const ROUNDING = 1e-6; // of counts, relative to the number of rows

  const logFactorial = (n) => {
    if (n > 30) return (n + 0.5) * Math.log(n) - n + 0.5 * Math.log(2 * Math.PI) + 1 / (12 * n) - 1 / (360 * n ** 3);
    let sum = 0;
    for (let k = 2; k <= n; k += 1) sum += Math.log(k);
    return sum;
  };

  const binomialQuantile = (level, n, share) => {
    if (share >= 1) return n;
    const reach = 12 * Math.sqrt(n * share * (1 - share)) + 12;
    let k = Math.max(0, Math.floor(n * share - reach));
    const chosen = logFactorial(n) - logFactorial(k) - logFactorial(n - k);
    let probability = Math.exp(chosen + k * Math.log(share) + (n - k) * Math.log1p(-share));
    let total = probability;
    while (total < level && k < n) {
      probability *= (((n - k) / (k + 1)) * share) / (1 - share);
      k += 1;
      total += probability;
    }
    return k;
  };

  const binomialLimits = (n, share, excess) =>
    [excess / 2, 1 - excess / 2].map((level) => binomialQuantile(level, n, share));

  const coverageLimits = (sums, data) => {
    if (sums.covered_expected === undefined) return null;
    const share = Math.min(sums.covered_expected / sums.n, 1);
    return binomialLimits(sums.n, share, 1 - data.confidence).map((count) => count / sums.n);
  };

  const squareLimits = (sums, data) => {
    if (sums.squares_variance === undefined) return null;
    if (!(sums.squares_expected > 0 && sums.squares_variance >= 0)) return null;
    const mean = sums.squares_expected / sums.n;
    const spread = sums.squares_variance / (9 * sums.squares_expected ** 2);
    const step = data.normal_quantile * Math.sqrt(spread);
    return [-1, 1].map((sign) => mean * Math.max(1 - spread + sign * step, 0) ** 3);
  };

  const histogramLimits = (sums, data) => {
    if (sums.pit_variance === undefined) return null;
    return sums.pit.map((_, bin) => {
      const size = (BINS * sums.pit_variance[bin % sums.pit_variance.length]) / sums.n + 1 / BINS;
      return binomialLimits(sums.n, 1 / (BINS * size), (1 - data.confidence) / BINS).map((count) => count * size);
    });
  };

  const VALUES = {
    coverage: (sums) => sums.covered / sums.n,
    squares: (sums) => sums.squares / sums.n,
  };
  const LIMITS = { coverage: coverageLimits, squares: squareLimits };

  /* Regions of a map. */

  const rounded = (number, digits) => {
    const near = Number(number.toPrecision(digits));
    const size = Math.abs(near);
    if (size === 0 || (size >= 1e-4 && size < 10 ** digits)) return String(near);
    const [mantissa, power] = near.toExponential().split("e");
    return `${mantissa}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  };
  const edgeText = (number) => rounded(number, 4);
  const shown = (number) =>
    Math.abs(number) >= 1e3 && Math.abs(number) < 1e5 ? number.toFixed(0) : rounded(number, 3);

  const addUp = (columns, chosen) => {
    const sums = {};
    for (const [name, values] of Object.entries(columns)) {
      if (["x", "y", "deviation"].includes(name)) continue;
      if (Array.isArray(values[0])) {
        sums[name] = values[0].map((_, bin) => chosen.reduce((sum, cell) => sum + values[cell][bin], 0));
      } else {
        sums[name] = chosen.reduce((sum, cell) => sum + (values[cell] ?? NaN), 0);
      }
    }
    return sums;
  };

  const cellsIn = (data, [xFirst, xLast, yFirst, yLast]) =>
    Array.from(data.cells.n.keys()).filter((cell) => {
      const [x, y] = [data.cells.x[cell], data.cells.y[cell]];
      return xFirst <= x && x <= xLast && yFirst <= y && y <= yLast;
    });

  const rangeName = ({ name, edges }, first, last) => {
    const [low, high] = [edges[first], edges[last + 1]].map(edgeText);
    const end = edges.length - 2;
    if (first > last) return `no ${name}`;
    if (first === 0 && last === end) return "";
    if (first === 0) return `${name} up to ${high}`;
    return last === end ? `${name} from ${low}` : `${name} ${low} to ${high}`;
  };

  const regionName = (data, [xFirst, xLast, yFirst, yLast]) => {
    const parts = [rangeName(data.x, xFirst, xLast), rangeName(data.y, yFirst, yLast)].filter(Boolean);
    return parts.join(", ") || "All rows";
  };

  const binsBetween = ({ edges, log }, [low, high]) => {
    const middles = edges.slice(1).map((edge, bin) => (log ? Math.sqrt(edge * edges[bin]) : (edge + edges[bin]) / 2));
    const inside = Array.from(middles.keys()).filter((bin) => low <= middles[bin] && middles[bin] <= high);
    return inside.length ? [inside[0], inside[inside.length - 1]] : [0, -1];
  };

  const judge = (value, limits, { below, above }) => {
    if (limits === null) return ["–", "none"];
    if (value < limits[0]) return [below, "fail"];
    return value > limits[1] ? [above, "fail"] : ["inside", "pass"];
  };

  const fillRow = (row, texts, style) => {
    texts.forEach((text, place) => {
      row.cells[place + 1].textContent = text;
    });
    const mark = document.createElement("span");
    mark.className = style;
    mark.append(...row.cells[3].childNodes);
    row.cells[3].append(mark);
  };

  const rangeText = (limits) => (limits === null ? "–" : limits.map(shown).join(" to "));

  const fillTable = (table, data, sums) => {
    const rows = Array.from(table.tBodies[0].rows);
    fillRow(rows.shift(), [sums.n.toLocaleString("en"), "–", "–"], "none");
    for (const quantity of data.quantities) {
      const value = VALUES[quantity.key](sums);
      const limits = sums.n ? LIMITS[quantity.key](sums, data) : null;
      const [text, style] = judge(value, limits, quantity);
      fillRow(rows.shift(), [sums.n ? shown(value) : "–", rangeText(limits), text], style);
    }
    const limits = sums.n && sums.pit ? histogramLimits(sums, data) : null;
    if (rows.length) {
      const room = ROUNDING * sums.n;
      const isOutside = ([low, high], bin) => sums.pit[bin] < low - room || sums.pit[bin] > high + room;
      const outside = limits === null ? 0 : limits.filter(isOutside).length;
      fillRow(rows.shift(), [String(outside), "0", outside ? "wrong shape" : "inside"], outside ? "fail" : "pass");
    }
    return limits;
  };

  const drawHistogram = (view, sums, limits) => {
    const bars = (low, high) =>
      sums.pit.map((_, bin) => ({ x: bin / BINS, x2: (bin + 1) / BINS, y: low(bin), y2: high(bin) }));
    const layers = [bars(() => 0, (bin) => sums.pit[bin]), [{ y: sums.n / BINS }]];
    if (sums.pit_variance) {
      const [low, high] = [0, 1].map((side) => (bin) => (limits === null ? 0 : limits[bin][side]));
      layers.unshift(bars(low, high));
    }
    layers.forEach((rows, number) => view.data(`layer ${number}`, rows));
    view.runAsync();
  };

  const drawnCells = ({ x, y, cells }) =>
    cells.deviation.map((value, cell) => ({
      x: x.edges[cells.x[cell]],
      x2: x.edges[cells.x[cell] + 1],
      y: y.edges[cells.y[cell]],
      y2: y.edges[cells.y[cell] + 1],
      value,
    }));

  const linkMap = async (block) => {
    if (!window.vegaEmbed) return; // a page without pictures
    const data = JSON.parse(block.querySelector("script").textContent);
    data.specs.map.layer[0].data.values = drawnCells(data);
    const options = { actions: false, renderer: "svg", ast: true };
    const draw = (name) => window.vegaEmbed(block.querySelector(`.${name}`), data.specs[name], options);
    const map = await draw("map");
    const histogram = data.specs.histogram ? await draw("histogram") : null;

    const show = (region) => {
      const sums = addUp(data.cells, cellsIn(data, region));
      const name = regionName(data, region);
      block.querySelector(".region-name").textContent = name;
      block.classList.toggle("whole", name === "All rows");
      const limits = fillTable(block.querySelector(".region table"), data, sums);
      if (histogram) drawHistogram(histogram.view, sums, limits);
    };

    const select = block.querySelector("select");
    data.regions.forEach((region, number) => select.add(new Option(regionName(data, region), number)));
    const chosen = () => data.regions[Number(select.value) || 0];
    select.addEventListener("change", () => show(chosen()));
    map.view.addSignalListener("region", (_, selection) => {
      show(selection.x ? [...binsBetween(data.x, selection.x), ...binsBetween(data.y, selection.y)] : chosen());
    });
    block.querySelector(".choice").hidden = false;
    show(chosen());
  };

  /** Run the compressed library that draws maps; without it, or in a browser that cannot unpack it, pictures stay. */
  const runLibrary = async () => {
    const packed = document.getElementById("library");
    if (!packed) return;
    const bytes = Uint8Array.from(atob(packed.textContent), (character) => character.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(unpacked).text();
    document.head.append(script);
  };

  /** Unfold the part of the page that a link leads to. */
  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target && target.closest("details");
    if (!folded) return;
    folded.open = true;
    target.scrollIntoView();
  };

  window.addEventListener("hashchange", unfold);
  unfold();
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  runLibrary()
    .then(() => Promise.all(Array.from(document.querySelectorAll(".linked-map"), linkMap)))
    .then(() => {
      document.body.dataset.ready = "true";
    });
})();
