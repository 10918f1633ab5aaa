// The picture of assets and flows. The server says where each node stands (compact() of web/graph.py).
"use strict";

(() => {
  const place = document.getElementById("graph");
  if (!place) return;
  const words = document.getElementById("graph-words");
  const note = document.getElementById("graph-note");
  const list = document.getElementById("graph-list");
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const { WIDTH, HEIGHT, RIGHT, TITLE, bends, label, style, visible } = GraphLook;
  const MANY = 400;
  // The least zoom at which text has nine pixels.
  const LEGIBLE = 0.75;
  // Lines that lead back go around the outermost boxes.
  const BESIDE = 36;
  // As many boxes move smoothly at a time.
  const MOVING = 150;
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
    const nodes = found.nodes.map(([id, name, state, sign, at, x, y, more, entry]) => {
      const kind = id.slice(0, id.indexOf(":"));
      const value = id.slice(kind.length + 1);
      return { id, kind, value, name: name || value, state, sign, at, x, y, more, entry, width: WIDTH, height: HEIGHT };
    });
    const edges = found.edges.map(([source, target, kinds, points]) => ({ source: nodes[source].id, target: nodes[target].id, kinds, points }));
    for (const { id, name, entry, x, y } of nodes.filter((node) => node.entry)) {
      const [word, part] = entry;
      const width = 14 + 6 * word.length;
      nodes.push({ id: `entry:${id}`, kind: "entry", value: `${name}: ${word}`, name: word, part: 100 * part, sign: "", state: "", at: 0, x: x - WIDTH / 2 + 5 - width / 2, y, more: 0, width, height: 18 });
    }
    for (const [id, state, sign, left, top, width, height] of found.frames) {
      const value = id.slice(id.indexOf(":") + 1);
      nodes.push({ id, kind: "frame", value, name: value, state, sign, at: 0, x: left + width / 2, y: top + height / 2, more: 0, width, height });
    }
    return { ...found, nodes, edges };
  };
  const pageAt = async (from) => {
    const response = await fetch(from, { headers: { accept: "text/html" } });
    if (!response.ok) throw new Error(String(response.status));
    return new DOMParser().parseFromString(await response.text(), "text/html");
  };

  // Where a box is, or the left upper box of its frame, or the hub whose ends it stands for.
  const anchorIn = (boxes, id) => {
    const box = boxes.get(id.startsWith("more:") ? id.split(":").slice(2).join(":") : id);
    if (!box || box.kind !== "frame") return box;
    return { x: box.x - box.width / 2 + WIDTH / 2, y: box.y - box.height / 2 + HEIGHT / 2 };
  };
  // What was opened stays where it is in the window, and the rest moves there.
  const shiftOf = (opened, answer) => {
    const before = new Map(graph.nodes().map((node) => [node.id(), { ...node.data(), ...node.position() }]));
    const after = new Map(answer.nodes.map((node) => [node.id, node]));
    const id = opened || answer.focus || answer.nodes[0]?.id;
    const [was, is] = id ? [anchorIn(before, id), anchorIn(after, id)] : [];
    return was && is ? { x: is.x - was.x, y: is.y - was.y } : { x: 0, y: 0 };
  };
  const CHANGING = ["kind", "name", "state", "sign", "label", "more", "width", "height", "part"];
  const OUT_OF_DATE = new Set(["stale", "missing", "outdated"]);
  const classesOf = (edge, signs, many) => {
    const stale = OUT_OF_DATE.has(signs.get(edge.source)) || OUT_OF_DATE.has(signs.get(edge.target)) ? " stale" : "";
    if (many) return `many${stale}`;
    return (edge.kinds === "r" ? "reads" : edge.kinds.includes("l") ? "links" : "") + stale;
  };
  const draw = async (answer, opened) => {
    const wanted = new Map(answer.nodes.map((node) => [node.id, node]));
    const signs = new Map(answer.nodes.map((node) => [node.id, node.sign]));
    const shift = shiftOf(opened, answer);
    const many = answer.edges.length > MANY;
    const moving = [];
    graph.batch(() => {
      graph.nodes().filter((node) => !wanted.has(node.id())).remove();
      const added = [];
      for (const node of answer.nodes) {
        const there = graph.getElementById(node.id);
        const { x, y, ...data } = { ...node, label: label(node) };
        if (there.nonempty()) {
          if (CHANGING.some((name) => there.data(name) !== data[name])) there.data(data);
          const at = { x: there.position("x") + shift.x, y: there.position("y") + shift.y };
          there.position(at);
          if (at.x !== x || at.y !== y) moving.push([there, { x, y }]);
        } else {
          added.push({ group: "nodes", data, position: { x, y }, classes: node.id === answer.focus ? "focus" : "" });
        }
      }
      const kept = new Set();
      for (const edge of answer.edges) {
        const id = `${edge.source} ${edge.target}`;
        const there = graph.getElementById(id);
        const classes = classesOf(edge, signs, many);
        const way = bends(wanted.get(edge.source), wanted.get(edge.target), edge.points);
        kept.add(id);
        if (there.nonempty()) there.data(way).classes(classes);
        else added.push({ group: "edges", data: { id, source: edge.source, target: edge.target, ...way }, classes });
      }
      graph.edges().filter((edge) => !kept.has(edge.id())).remove();
      graph.add(added);
    });
    if (shift.x || shift.y) graph.panBy({ x: -shift.x * graph.zoom(), y: -shift.y * graph.zoom() });
    const size = answer.nodes.filter((node) => node.kind !== "frame" && node.kind !== "entry").length;
    words.textContent = size > 1 ? "" : size ? "Nothing deployed makes this asset, reads it or runs on it." : "No flow is deployed yet.";
    words.classList.add("below");
    note.textContent = answer.truncated ? `Only the nearest ${size} are shown.` : "";
    if (still || moving.length > MOVING) graph.batch(() => moving.forEach(([node, to]) => node.position(to)));
    else await Promise.all(moving.map(([node, position]) => node.animation({ position }, { duration: 200 }).play().promise()));
    place.dataset.nodes = String(size);
  };

  // Cytoscape would measure every label to find the extent; the boxes are all of one size.
  const viewOf = (spots, middle, least) => {
    const left = Math.min(...spots.map((spot) => spot.x - spot.width / 2)) - BESIDE;
    const right = Math.max(...spots.map((spot) => spot.x + spot.width / 2)) + BESIDE;
    const top = Math.min(...spots.map((spot) => spot.y - spot.height / 2)) - 24;
    const bottom = Math.max(...spots.map((spot) => spot.y + spot.height / 2)) + 24;
    const whole = Math.min(1.1, place.clientWidth / (right - left), place.clientHeight / (bottom - top));
    const zoom = Math.max(least, whole);
    // As much as fits is shown of the side to which the graph goes on; beyond its ends is nothing to see.
    const within = (wanted, first, last, room) => {
      const half = room / zoom / 2;
      if (last - first <= 2 * half) return (first + last) / 2;
      return Math.min(Math.max(wanted, first + half), last - half);
    };
    // What one came for stands at the left, behind what leads to it directly.
    const centre = {
      x: within(middle ? middle.x - 2 * WIDTH + place.clientWidth / zoom / 2 : left, left, right, place.clientWidth),
      y: within(middle ? middle.y : top, top, bottom, place.clientHeight),
    };
    return { zoom, pan: { x: place.clientWidth / 2 - zoom * centre.x, y: place.clientHeight / 2 - zoom * centre.y } };
  };
  const fitAll = () => {
    const spots = graph.nodes().map((node) => ({ ...node.data(), ...node.position() }));
    if (spots.length) graph.viewport(viewOf(spots, null, 0.03));
  };

  // Where the window is in the whole. Pressing it moves the window there.
  const map = document.getElementById("graph-map");
  let mapped = null;
  const drawMap = () => {
    const seen = graph.extent();
    const nodes = graph.nodes().map((node) => ({ ...node.data(), ...node.position() }));
    const left = Math.min(seen.x1, ...nodes.map((node) => node.x - node.width / 2));
    const top = Math.min(seen.y1, ...nodes.map((node) => node.y - node.height / 2));
    const right = Math.max(seen.x2, ...nodes.map((node) => node.x + node.width / 2));
    const bottom = Math.max(seen.y2, ...nodes.map((node) => node.y + node.height / 2));
    map.hidden = right - left <= 1.01 * seen.w && bottom - top <= 1.01 * seen.h;
    if (map.hidden) return;
    const scale = Math.min(map.width / (right - left), map.height / (bottom - top));
    mapped = { scale, left: left - (map.width / scale - (right - left)) / 2, top: top - (map.height / scale - (bottom - top)) / 2 };
    const pen = map.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, map.width, map.height);
    pen.setTransform(scale, 0, 0, scale, -mapped.left * scale, -mapped.top * scale);
    const look = getComputedStyle(map);
    pen.fillStyle = look.color;
    pen.strokeStyle = look.getPropertyValue("--accent");
    for (const node of nodes) if (node.kind !== "frame" && node.kind !== "entry") pen.fillRect(node.x - node.width / 2, node.y - node.height / 2, node.width, node.height);
    pen.lineWidth = 2 / scale;
    pen.strokeRect(seen.x1, seen.y1, seen.w, seen.h);
  };
  let mapWaits = 0;
  const mapLater = () => {
    mapWaits ||= setTimeout(() => {
      mapWaits = 0;
      drawMap();
    }, 50);
  };
  map.addEventListener("click", ({ offsetX, offsetY }) => {
    const at = { x: mapped.left + offsetX / mapped.scale, y: mapped.top + offsetY / mapped.scale };
    graph.pan({ x: place.clientWidth / 2 - graph.zoom() * at.x, y: place.clientHeight / 2 - graph.zoom() * at.y });
  });
  graph.on("viewport resize add remove position", mapLater);

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
    for (const node of answer.nodes) pen.rect(node.x - node.width / 2, node.y - node.height / 2, node.width, node.height);
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
        const view = viewOf(answer.nodes, answer.nodes.find((node) => node.id === answer.focus), LEGIBLE);
        words.textContent = "";
        if (answer.nodes.length > MANY) await sketch(answer, view);
        graph.viewport(view);
      }
      await draw(answer, null);
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
    await draw(answerIn(page), opened);
  };
  const open = (id) => {
    const next = new URL(address);
    next.searchParams.append("opened", id);
    show(next, id, true).catch(() => list && window.location.assign(next));
  };
  const fold = (id) => {
    const next = new URL(address);
    const opened = next.searchParams.getAll("opened").filter((each) => each !== id);
    next.searchParams.delete("opened");
    for (const each of opened) next.searchParams.append("opened", each);
    if (next.href !== address.href) show(next, id, true).catch(() => window.location.assign(next));
  };
  list?.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-draws]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show(new URL(link.href), link.dataset.draws, true).catch(() => window.location.assign(link.href));
  });
  if (list) window.addEventListener("popstate", () => show(new URL(location.href), null, false).catch(() => location.reload()));

  // States and ages are kept up to date. What changed meanwhile moves to its place.
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
    if (kind === "entry") {
      window.location.assign(goTo(graph.getElementById(target.id().slice("entry:".length))));
      return;
    }
    if (kind === "frame") {
      if (list && position.y < target.position("y") - target.height() / 2 + TITLE) fold(target.id());
      return;
    }
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
  graph.on("mouseover", "node[kind != 'frame'][kind != 'entry']", ({ target }) => {
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
