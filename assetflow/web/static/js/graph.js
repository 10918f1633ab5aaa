// The picture of assets and flows. The server says where each node stands (compact() of web/graph.py).
"use strict";

(() => {
  const place = document.getElementById("graph");
  if (!place) return;
  const words = document.getElementById("graph-words");
  const note = document.getElementById("graph-note");
  const list = document.getElementById("graph-list");
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const { WIDTH, HEIGHT, RIGHT, label, style, visible } = GraphLook;
  const ROW = 58;
  const COLUMN = WIDTH + 20;
  const MANY = 300;
  const LEGIBLE = 0.6;
  const CLOSE = 0.75;
  // A refresh may take a fifth of the time, at most.
  const SHARE = 5;
  const SECONDS = 2;
  const AGES = 20;
  words.textContent = "Loading the graph";

  // A large graph is drawn without the finer pixels of a good screen, so that it moves smoothly.
  const inside = document.getElementById("graph-data");
  const isLarge = Boolean(inside) && inside.textContent.length > 40_000;
  const graph = cytoscape({
    container: place, style: style(), minZoom: 0.03, maxZoom: 2.5, boxSelectionEnabled: false, autounselectify: true,
    textureOnViewport: true, hideEdgesOnViewport: true, pixelRatio: isLarge ? 1 : "auto", layout: { name: "preset" },
  });

  // The address of the graph page with what is shown now. On the graph page, it is that of the page itself.
  let address = new URL(place.dataset.source, location.href);
  const answerIn = (page) => {
    const found = JSON.parse(page.getElementById("graph-data").textContent);
    const nodes = found.nodes.map(([id, name, state, sign, at, x, y, more]) => {
      const kind = id.slice(0, id.indexOf(":"));
      const value = id.slice(kind.length + 1);
      return { id, kind, value, name: name || value, state, sign, at, x, y, more };
    });
    const edges = found.edges.map(([source, target, kinds]) => ({ source: nodes[source].id, target: nodes[target].id, kinds }));
    return { ...found, nodes, edges };
  };
  const pageAt = async (from) => {
    const response = await fetch(from, { headers: { accept: "text/html" } });
    if (!response.ok) throw new Error(String(response.status));
    return new DOMParser().parseFromString(await response.text(), "text/html");
  };

  // What is there stays where it is. New nodes stand as the server says, seen from the one that was opened.
  const taken = new Map();
  const take = (spot) => {
    const column = Math.floor(spot.x / COLUMN);
    if (!taken.has(column)) taken.set(column, []);
    taken.get(column).push(spot);
  };
  const free = (x, y) => {
    const column = Math.floor(x / COLUMN);
    const near = [column - 1, column, column + 1].flatMap((each) => taken.get(each) || []).filter((spot) => Math.abs(spot.x - x) < COLUMN);
    const isFree = (height) => near.every((spot) => Math.abs(spot.y - height) >= ROW - 2);
    let step = 0;
    while (!isFree(y + step) && !isFree(y - step)) step += ROW / 2;
    const spot = { x, y: isFree(y + step) ? y + step : y - step };
    take(spot);
    return spot;
  };
  // A box that is folded again stands where it stood before it was opened.
  const homes = new Map();
  const shiftFrom = (opened, answer) => {
    const before = opened && graph.getElementById(opened);
    const home = before && before.nonempty() ? { ...before.position() } : opened && homes.get(opened);
    if (!home) return { x: 0, y: 0 };
    homes.set(opened, home);
    const anchor = answer.nodes.find((node) => node.id === opened) || answer.nodes.find((node) => graph.getElementById(node.id).empty());
    return anchor ? { x: home.x - anchor.x, y: home.y - anchor.y } : { x: 0, y: 0 };
  };
  const CHANGING = ["name", "state", "sign", "label", "more"];
  const OUT_OF_DATE = new Set(["stale", "missing", "outdated"]);
  const classesOf = (edge, signs, many) => {
    const stale = OUT_OF_DATE.has(signs.get(edge.source)) || OUT_OF_DATE.has(signs.get(edge.target)) ? " stale" : "";
    if (many) return `many${stale}`;
    return (edge.kinds === "r" ? "reads" : edge.kinds.includes("l") ? "links" : "") + stale;
  };
  const draw = (answer, opened) => {
    const wanted = new Set(answer.nodes.map((node) => node.id));
    const signs = new Map(answer.nodes.map((node) => [node.id, node.sign]));
    const shift = shiftFrom(opened, answer);
    const many = answer.edges.length > MANY;
    graph.batch(() => {
      graph.nodes().filter((node) => !wanted.has(node.id())).remove();
      taken.clear();
      graph.nodes().forEach((node) => take(node.position()));
      const isFirst = graph.nodes().empty();
      const added = [];
      for (const node of answer.nodes) {
        const there = graph.getElementById(node.id);
        const data = { ...node, label: label(node) };
        if (there.nonempty()) {
          if (CHANGING.some((name) => there.data(name) !== data[name])) there.data(data);
        } else {
          const spot = isFirst ? { x: node.x, y: node.y } : free(node.x + shift.x, node.y + shift.y);
          added.push({ group: "nodes", data, position: spot, classes: node.id === answer.focus ? "focus" : "" });
        }
      }
      const kept = new Set();
      for (const edge of answer.edges) {
        const id = `${edge.source} ${edge.target}`;
        const there = graph.getElementById(id);
        const classes = classesOf(edge, signs, many);
        kept.add(id);
        if (there.nonempty()) there.classes(classes);
        else added.push({ group: "edges", data: { id, source: edge.source, target: edge.target }, classes });
      }
      graph.edges().filter((edge) => !kept.has(edge.id())).remove();
      graph.add(added);
    });
    const size = answer.nodes.length;
    words.textContent = size > 1 ? "" : size ? "Nothing deployed makes this asset, reads it or runs on it." : "No flow is deployed yet.";
    words.classList.add("below");
    note.textContent = answer.truncated ? `Only the nearest ${size} are shown.` : "";
    place.dataset.nodes = String(size);
  };

  // Cytoscape would measure every label to find the extent; the boxes are all of one size.
  const viewOf = (spots, middle) => {
    const [left, right] = [Math.min(...spots.map((spot) => spot.x)), Math.max(...spots.map((spot) => spot.x))];
    const [top, bottom] = [Math.min(...spots.map((spot) => spot.y)), Math.max(...spots.map((spot) => spot.y))];
    const width = right - left + WIDTH + 48;
    const height = bottom - top + HEIGHT + 48;
    const whole = Math.max(0.03, Math.min(1.1, place.clientWidth / width, place.clientHeight / height));
    // Of a large neighbourhood only the middle is shown, so that it can be read.
    const zoom = middle && whole < LEGIBLE ? CLOSE : whole;
    // As much as fits is shown of the side to which the graph goes on; beyond its ends is nothing to see.
    const within = (wanted, first, last, room) => {
      const half = room / zoom / 2;
      if (last - first <= 2 * half) return (first + last) / 2;
      return Math.min(Math.max(wanted, first + half), last - half);
    };
    const centre = {
      x: within(middle ? middle.x : 0, left - WIDTH / 2 - 24, right + WIDTH / 2 + 24, place.clientWidth),
      y: within(middle ? middle.y : 0, top - HEIGHT / 2 - 24, bottom + HEIGHT / 2 + 24, place.clientHeight),
    };
    return { zoom, pan: { x: place.clientWidth / 2 - zoom * centre.x, y: place.clientHeight / 2 - zoom * centre.y } };
  };
  const fitAll = () => {
    const spots = graph.nodes().map((node) => node.position());
    if (spots.length) graph.viewport(viewOf(spots));
  };

  // A large graph is sketched at once, without labels. Then Cytoscape builds its own picture of it, which takes longer.
  const sketch = (answer, view) => {
    const canvas = document.createElement("canvas");
    canvas.className = "graph-sketch";
    canvas.width = place.clientWidth;
    canvas.height = place.clientHeight;
    place.append(canvas);
    const pen = canvas.getContext("2d");
    pen.setTransform(view.zoom, 0, 0, view.zoom, view.pan.x, view.pan.y);
    pen.lineWidth = 1 / view.zoom;
    pen.strokeStyle = getComputedStyle(place).color;
    pen.fillStyle = getComputedStyle(place.parentElement).backgroundColor;
    const spots = new Map(answer.nodes.map((node) => [node.id, node]));
    pen.beginPath();
    for (const edge of answer.edges) {
      const [source, target] = [spots.get(edge.source), spots.get(edge.target)];
      pen.moveTo(source.x, source.y);
      pen.lineTo(target.x, target.y);
    }
    pen.stroke();
    pen.beginPath();
    for (const node of answer.nodes) pen.rect(node.x - WIDTH / 2, node.y - HEIGHT / 2, WIDTH, HEIGHT);
    pen.fill();
    pen.stroke();
    performance.mark("graph-sketch");
    graph.one("render", () => canvas.remove());
    return new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  };
  const begin = async () => {
    try {
      // The graph page has the answer in itself.
      const answer = answerIn(inside ? document : await pageAt(address));
      if (answer.nodes.length) {
        const view = viewOf(answer.nodes, answer.nodes.find((node) => node.id === answer.focus));
        words.textContent = "";
        if (answer.nodes.length > MANY) await sketch(answer, view);
        graph.viewport(view);
      }
      draw(answer, null);
    } catch {
      words.textContent = "The graph cannot be loaded now.";
    }
  };

  // The picture, the list and the address change together. `opened` is the box that was opened or folded.
  let newest = 0;
  const show = async (next, opened, push) => {
    const mine = ++newest;
    const page = await pageAt(next);
    if (mine !== newest) return;
    address = next;
    if (list) {
      Idiomorph.morph(list, page.getElementById("graph-list").innerHTML, { morphStyle: "innerHTML" });
      if (push) history.pushState(null, "", next);
    }
    draw(answerIn(page), opened);
  };
  const open = (id) => {
    const next = new URL(address);
    next.searchParams.append("opened", id);
    show(next, id, true).catch(() => list && window.location.assign(next));
  };
  list?.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-draws]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show(new URL(link.href), link.dataset.draws, true).catch(() => window.location.assign(link.href));
  });
  if (list) window.addEventListener("popstate", () => show(new URL(location.href), null, false).catch(() => location.reload()));

  // States and ages are kept up to date. Nodes stay where they are.
  let waits = 0;
  let again = false;
  const refresh = () => {
    again = true;
    if (waits) return;
    waits = setTimeout(async () => {
      const started = performance.now();
      // What changes from now on may not be in the answer.
      again = false;
      await show(address, null, false).catch(() => null);
      waits = setTimeout(() => {
        waits = 0;
        if (again) refresh();
      }, SHARE * (performance.now() - started));
    }, 1000 * SECONDS);
  };
  for (const kind of ["assets", "events", "decisions"]) document.body.addEventListener(`live-${kind}`, refresh);
  setInterval(() => graph.batch(() => graph.nodes().forEach((node) => node.data("label", label(node.data())))), 1000 * AGES);

  const goTo = (node) => {
    const value = node.data("value");
    if (node.data("kind") === "asset" || node.data("kind") === "name") return `/asset?asset=${encodeURIComponent(value)}`;
    if (node.data("kind") === "flow" && node.data("state") !== "not scheduled") return `/consumers/${value.split("/").map(encodeURIComponent).join("/")}`;
    return null;
  };
  graph.on("tap", "node", ({ target, position, originalEvent }) => {
    const kind = target.data("kind");
    const isOnPlus = target.data("more") && position.x > target.position("x") + WIDTH / 2 - RIGHT;
    if (kind === "group" || kind === "more" || isOnPlus) {
      open(target.id());
      return;
    }
    const to = originalEvent && originalEvent.shiftKey ? `/graph?focus=${encodeURIComponent(target.id())}` : goTo(target);
    if (to && !target.hasClass("focus")) window.location.assign(to);
    else if (kind !== "asset") window.location.assign(`/graph?focus=${encodeURIComponent(target.id())}`);
  });
  const showPath = (node) => graph.batch(() => {
    graph.elements(".path").removeClass("path");
    if (node.nonempty()) node.union(node.predecessors()).union(node.successors()).addClass("path");
  });
  graph.on("mouseover", "node", ({ target }) => {
    place.title = visible(target.data("value"));
    place.classList.add("pointing");
    showPath(target);
  });
  graph.on("mouseout", "node", () => {
    place.removeAttribute("title");
    place.classList.remove("pointing");
    showPath(graph.collection());
  });
  // Whoever goes through the list by keyboard sees in the picture where that leads.
  list?.addEventListener("focusin", ({ target }) => {
    const node = graph.getElementById(target.closest("li")?.dataset.node || "");
    showPath(node);
    const at = node.nonempty() && node.renderedPosition();
    if (at && (at.x < 0 || at.y < 0 || at.x > place.clientWidth || at.y > place.clientHeight)) graph.center(node);
  });
  list?.addEventListener("focusout", () => showPath(graph.collection()));

  const zoom = (factor) => {
    const level = graph.zoom() * factor;
    graph.animate({ zoom: { level, renderedPosition: { x: place.clientWidth / 2, y: place.clientHeight / 2 } } }, { duration: still ? 0 : 150 });
  };
  document.getElementById("graph-in").addEventListener("click", () => zoom(1.4));
  document.getElementById("graph-out").addEventListener("click", () => zoom(1 / 1.4));
  document.getElementById("graph-fit").addEventListener("click", fitAll);
  const recolour = () => graph.style(style());
  document.addEventListener("theme", recolour);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  new ResizeObserver(() => graph.resize()).observe(place);

  begin();
})();
