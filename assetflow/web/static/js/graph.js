// The picture of assets and flows. The server says where each node stands; drawn on a canvas, text of users stays text.
"use strict";

(() => {
  const place = document.getElementById("graph");
  const words = document.getElementById("graph-words");
  const note = document.getElementById("graph-note");
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const opened = new Set(new URLSearchParams(location.search).getAll("opened"));
  const WIDTH = 196;
  const HEIGHT = 42;
  const ROW = 58;
  const MANY = 300;
  words.textContent = "Loading the graph";

  const visible = (text) =>
    text.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);
  // The end of a URI and the beginning of a name tell the most.
  const cut = (text, most) => {
    if (text.length <= most) return text;
    return text.includes("://") ? `…${text.slice(1 - most)}` : `${text.slice(0, most - 1)}…`;
  };
  const ago = (at) => {
    const seconds = Math.max(0, (Date.now() - Date.parse(at)) / 1000);
    for (const [size, unit, name] of [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"]]) {
      if (seconds < size) return `${Math.floor(seconds / unit)} ${name} ago`;
    }
    return `${Math.floor(seconds / 86400)} d ago`;
  };
  const SIGNS = { failed: "✕", completed: "✓", running: "◌", paused: "‖", held: "‖", late: "⏱", undeliverable: "✕" };
  const label = (node) => {
    const name = node.kind === "alias" ? `alias ${node.name}` : node.name;
    const sign = SIGNS[node.state] ? `${SIGNS[node.state]} ` : "";
    const state = node.state === "updated" ? "" : `${sign}${node.state}`;
    const second = [state, node.at ? ago(node.at) : ""].filter(Boolean).join(" · ");
    return `${cut(visible(name), 28)}\n${cut(visible(second), 32)}`;
  };

  const style = () => {
    const read = getComputedStyle(document.documentElement);
    const colour = (name) => {
      // The canvas does not know custom properties; the browser works the colour out.
      const probe = document.createElement("i");
      probe.style.color = read.getPropertyValue(`--${name}`);
      document.body.append(probe);
      const found = getComputedStyle(probe).color;
      probe.remove();
      return found;
    };
    const strong = colour("border-strong");
    const accent = colour("accent");
    return [
      {
        selector: "node",
        style: {
          shape: "rectangle", width: WIDTH, height: HEIGHT, label: "data(label)", "text-wrap": "wrap", "line-height": 1.25,
          "font-family": read.getPropertyValue("--font"), "font-size": 12, "min-zoomed-font-size": 6, color: colour("text"),
          "text-valign": "center", "text-halign": "center",
          "background-color": colour("card"), "border-width": 1.5, "border-color": strong,
        },
      },
      { selector: "node[kind = 'flow']", style: { shape: "round-rectangle", "border-color": accent } },
      { selector: "node[kind = 'alias'], node[kind = 'name']", style: { "border-style": "dashed" } },
      { selector: "node[kind = 'group'], node[kind = 'more']", style: { "border-style": "double", "border-width": 4 } },
      { selector: "node[state = 'failed'], node[state = 'late'], node[state = 'undeliverable']", style: { "border-color": colour("bad"), "background-color": colour("bad-back"), color: colour("bad") } },
      { selector: "node[state = 'paused'], node[state = 'held']", style: { "border-color": colour("wait"), "background-color": colour("wait-back"), color: colour("wait") } },
      { selector: "node.focus", style: { "border-width": 4, "border-color": accent } },
      {
        selector: "edge",
        style: {
          width: 1.6, "curve-style": "bezier", "line-color": strong, "target-arrow-color": strong,
          "target-arrow-shape": "triangle", "arrow-scale": 0.9,
        },
      },
      { selector: "edge.reads", style: { "line-style": "dashed", "target-arrow-fill": "hollow" } },
      { selector: "edge.links", style: { "line-style": "dotted" } },
      { selector: "edge.many", style: { "curve-style": "haystack", "haystack-radius": 0, width: 1, "target-arrow-shape": "none" } },
      { selector: ".path", style: { "line-color": accent, "target-arrow-color": accent, width: 2.6 } },
      { selector: "node.path", style: { "border-color": accent } },
    ];
  };

  const graph = cytoscape({
    container: place, style: style(), minZoom: 0.03, maxZoom: 2.5, boxSelectionEnabled: false, autounselectify: true,
    textureOnViewport: true, hideEdgesOnViewport: true, pixelRatio: 1, layout: { name: "preset" },
  });

  // What is there stays where it is. New nodes stand as the server says, seen from the one that was opened.
  const taken = new Map();
  const free = (x, y) => {
    const column = taken.get(x) || [];
    const isFree = (height) => column.every((other) => Math.abs(other - height) >= ROW - 2);
    let step = 0;
    while (!isFree(y + step) && !isFree(y - step)) step += ROW / 2;
    const found = isFree(y + step) ? y + step : y - step;
    taken.set(x, [...column, found]);
    return { x, y: found };
  };
  const draw = (answer, from) => {
    const wanted = new Map(answer.nodes.map((node) => [node.id, node]));
    const before = from && graph.getElementById(from.id).nonempty() ? graph.getElementById(from.id).position() : null;
    const anchor = before && (wanted.get(from.id) || answer.nodes.find((node) => graph.getElementById(node.id).empty()));
    const shift = anchor ? { x: before.x - anchor.x, y: before.y - anchor.y } : { x: 0, y: 0 };
    const many = answer.edges.length > MANY;
    graph.batch(() => {
      graph.nodes().filter((node) => !wanted.has(node.id())).remove();
      taken.clear();
      graph.nodes().forEach((node) => taken.set(node.position("x"), [...(taken.get(node.position("x")) || []), node.position("y")]));
      const added = [];
      for (const node of answer.nodes) {
        const there = graph.getElementById(node.id);
        const data = { ...node, label: label(node) };
        if (there.nonempty()) there.data(data);
        else {
          const spot = graph.nodes().empty() ? { x: node.x, y: node.y } : free(node.x + shift.x, node.y + shift.y);
          added.push({ group: "nodes", data, position: spot, classes: node.id === answer.focus ? "focus" : "" });
        }
      }
      for (const edge of answer.edges) {
        const id = `${edge.source} ${edge.target}`;
        if (graph.getElementById(id).nonempty()) continue;
        const only = edge.kinds.every((kind) => kind === "reads") ? "reads" : edge.kinds.includes("links") ? "links" : "";
        added.push({ group: "edges", data: { id, source: edge.source, target: edge.target }, classes: many ? "many" : only });
      }
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
    // Of a large neighbourhood the middle is shown, so that it can be read.
    const zoom = middle ? Math.max(whole, 0.75) : whole;
    const centre = middle && zoom > whole ? middle : { x: (left + right) / 2, y: (top + bottom) / 2 };
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

  const answerOf = async (from) => {
    // The graph page has the answer in itself.
    const inside = document.getElementById("graph-data");
    if (inside && !from) return JSON.parse(inside.textContent);
    const address = new URL(place.dataset.source, location.href);
    opened.forEach((id) => address.searchParams.append("opened", id));
    const response = await fetch(address, { headers: { accept: "application/json" } });
    if (!response.ok) throw new Error(String(response.status));
    return response.json();
  };
  const load = async (from) => {
    try {
      const answer = await answerOf(from);
      if (!from && answer.nodes.length) {
        const view = viewOf(answer.nodes, answer.nodes.find((node) => node.id === answer.focus));
        words.textContent = "";
        if (answer.nodes.length > MANY) await sketch(answer, view);
        graph.viewport(view);
      }
      draw(answer, from);
    } catch {
      words.textContent = "The graph cannot be loaded now.";
    }
  };

  const goTo = (node) => {
    const value = node.data("value");
    if (node.data("kind") === "asset" || node.data("kind") === "name") return `/asset?asset=${encodeURIComponent(value)}`;
    if (node.data("kind") === "flow" && node.data("state") !== "not scheduled") return `/consumers/${value.split("/").map(encodeURIComponent).join("/")}`;
    return null;
  };
  graph.on("tap", "node", ({ target, originalEvent }) => {
    const kind = target.data("kind");
    if (kind === "group" || kind === "more") {
      opened.add(target.id());
      load({ id: target.id() });
      return;
    }
    const address = originalEvent && originalEvent.shiftKey ? `/graph?focus=${encodeURIComponent(target.id())}` : goTo(target);
    if (address && !target.hasClass("focus")) window.location.assign(address);
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
  const list = document.querySelector(".graph-list");
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

  load(null);
})();
