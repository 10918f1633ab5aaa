// The lineage graph around an asset: neighbours first, more on demand. Drawn on a canvas, so text of users stays text.
"use strict";

(() => {
  const place = document.getElementById("lineage");
  const words = document.getElementById("lineage-words");
  const note = document.getElementById("lineage-note");
  const start = place.dataset.start;
  words.textContent = "Loading the graph";
  const MOST = 500;
  const FIRST = { depth: 2, limit: MOST };
  const MORE = { depth: 1, limit: MOST };
  const KINDS = {
    scheduling: new Set(["schedules", "links"]),
    data: new Set(["produces", "reads", "links"]),
  };
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const expanded = new Set();

  const visible = (text) =>
    text.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);

  const label = (kind, value) => {
    let text = value;
    if (kind === "asset") {
      const parts = value.replace(/\/+$/, "").split("/").filter(Boolean);
      text = parts.length > 2 ? `…/${parts.slice(-1)[0]}` : value;
    } else if (kind === "alias") {
      text = `alias ${value}`;
    }
    text = visible(text);
    return text.length > 30 ? `${text.slice(0, 29)}…` : text;
  };

  const page = (kind, value) => {
    if (kind === "asset" || kind === "name") return `/asset?asset=${encodeURIComponent(value)}`;
    if (kind === "flow") return `/consumers/${value.split("/").map(encodeURIComponent).join("/")}`;
    return null;
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
    const text = colour("text");
    const soft = colour("text-soft");
    const card = colour("card");
    const accent = colour("accent");
    const strong = colour("border-strong");
    return [
      {
        selector: "node",
        style: {
          shape: "round-rectangle", width: "data(width)", height: 32, label: "data(label)",
          "font-family": read.getPropertyValue("--font"), "font-size": 12, color: text,
          "text-valign": "center", "text-halign": "center",
          "background-color": card, "border-width": 1.5, "border-color": strong,
        },
      },
      { selector: "node[kind = 'flow']", style: { "border-color": accent, "corner-radius": 16, color: text } },
      { selector: "node[kind = 'alias'], node[kind = 'name']", style: { "border-style": "dashed", color: soft } },
      { selector: "node[id = $start]".replace("$start", JSON.stringify(start)), style: { "background-color": accent, "border-color": accent, color: colour("on-accent"), "font-weight": 600 } },
      { selector: "node.more", style: { "border-width": 3, "border-style": "double" } },
      { selector: "node:active", style: { "overlay-opacity": 0.08 } },
      {
        selector: "edge",
        style: {
          width: 1.6, "curve-style": "bezier", "line-color": strong, "target-arrow-color": strong,
          "target-arrow-shape": "triangle", "arrow-scale": 0.9, "line-style": "dashed", "line-dash-pattern": [5, 4],
        },
      },
      { selector: "edge[kind = 'schedules']", style: { "line-style": "solid", "line-color": accent, "target-arrow-color": accent } },
      { selector: "edge[kind = 'links']", style: { "line-style": "dotted" } },
      { selector: ".off", style: { display: "none" } },
    ];
  };

  const graph = cytoscape({
    container: place,
    style: style(),
    minZoom: 0.08,
    maxZoom: 2.5,
    boxSelectionEnabled: false,
    autounselectify: true,
    textureOnViewport: true,
  });

  const measure = document.createElement("canvas").getContext("2d");
  measure.font = `12px ${getComputedStyle(document.body).fontFamily}`;

  const add = (answer) => {
    for (const node of answer.nodes) {
      const there = graph.getElementById(node.id);
      const text = label(node.kind, node.value);
      if (there.empty()) {
        const width = Math.ceil(measure.measureText(text).width * 1.06) + 28;
        graph.add({ group: "nodes", data: { id: node.id, kind: node.kind, value: node.value, label: text, width } });
      }
      graph.getElementById(node.id).toggleClass("more", node.more && !expanded.has(node.id));
    }
    for (const edge of answer.edges) {
      const id = `${edge.kind} ${edge.source} ${edge.target}`;
      if (graph.getElementById(id).empty()) graph.add({ group: "edges", data: { id, ...edge } });
    }
  };

  // What is switched off, and what then hangs on nothing, is not shown.
  const filter = () => {
    const wanted = new Set();
    for (const [name, kinds] of Object.entries(KINDS)) {
      if (document.getElementById(`show-${name}`).checked) kinds.forEach((kind) => wanted.add(kind));
    }
    graph.edges().forEach((edge) => edge.toggleClass("off", !wanted.has(edge.data("kind"))));
    const reached = new Set([start]);
    const waiting = [graph.getElementById(start)];
    while (waiting.length) {
      for (const edge of waiting.pop().connectedEdges().toArray()) {
        if (edge.hasClass("off")) continue;
        for (const node of edge.connectedNodes().toArray()) {
          if (reached.has(node.id())) continue;
          reached.add(node.id());
          waiting.push(node);
        }
      }
    }
    graph.nodes().forEach((node) => node.toggleClass("off", !reached.has(node.id())));
    return reached.size;
  };

  const arrange = () => {
    const shown = graph.elements().not(".off");
    const plan = new dagre.graphlib.Graph();
    plan.setGraph({
      rankdir: place.clientWidth < 520 ? "TB" : "LR", nodesep: 14, ranksep: 56,
      ranker: shown.nodes().length > 150 ? "longest-path" : "network-simplex",
    });
    plan.setDefaultEdgeLabel(() => ({}));
    shown.nodes().forEach((node) => void plan.setNode(node.id(), { width: node.data("width"), height: 32 }));
    shown.edges().forEach((edge) => void plan.setEdge(edge.data("source"), edge.data("target")));
    dagre.layout(plan);
    graph.batch(() => shown.nodes().forEach((node) => {
      const { x, y } = plan.node(node.id());
      node.position({ x, y });
    }));
  };

  const fit = () => {
    const shown = graph.elements().not(".off");
    graph.fit(shown, 24);
    if (graph.zoom() > 1.1) {
      graph.zoom(1.1);
      graph.center(shown);
    }
    // Of a large graph the middle is shown, so that it can be read.
    if (graph.zoom() < 0.45) {
      graph.zoom(0.45);
      graph.center(graph.getElementById(start));
    }
  };

  const draw = (truncated) => {
    const size = filter();
    arrange();
    fit();
    words.textContent = size > 1 ? "" : "Nothing deployed makes this asset, reads it or runs on it.";
    // Below the only node, not over it.
    words.classList.add("below");
    if (truncated) note.textContent = `Only the nearest ${MOST} are shown.`;
    place.dataset.nodes = String(size);
  };

  const load = async (node, { depth, limit }) => {
    const query = new URLSearchParams({ node, depth, limit });
    try {
      const response = await fetch(`/api/v1/lineage?${query}`, { headers: { accept: "application/json" } });
      if (!response.ok) throw new Error(String(response.status));
      const answer = await response.json();
      expanded.add(node);
      graph.batch(() => add(answer));
      draw(answer.truncated);
    } catch {
      words.textContent = "The graph cannot be loaded now.";
    }
  };

  // A flow that nothing starts by a schedule is no consumer, and has no page here.
  const hasPage = (node) => node.data("kind") !== "flow" || node.incomers("edge[kind = 'schedules']").nonempty();

  graph.on("tap", "node", (event) => {
    const node = event.target;
    const address = hasPage(node) && page(node.data("kind"), node.data("value"));
    if (node.hasClass("more")) load(node.id(), MORE);
    else if (address && node.id() !== start) window.location.assign(address);
  });
  graph.on("mouseover", "node", (event) => {
    place.title = visible(event.target.data("value"));
    place.classList.add("pointing");
  });
  graph.on("mouseout", "node", () => {
    place.removeAttribute("title");
    place.classList.remove("pointing");
  });

  const zoom = (factor) => {
    const level = graph.zoom() * factor;
    graph.animate({ zoom: { level, renderedPosition: { x: place.clientWidth / 2, y: place.clientHeight / 2 } } }, { duration: still ? 0 : 150 });
  };
  document.getElementById("lineage-in").addEventListener("click", () => zoom(1.4));
  document.getElementById("lineage-out").addEventListener("click", () => zoom(1 / 1.4));
  document.getElementById("lineage-fit").addEventListener("click", () => graph.fit(graph.elements().not(".off"), 24));
  for (const name of Object.keys(KINDS)) {
    document.getElementById(`show-${name}`).addEventListener("change", () => draw(false));
  }
  const recolour = () => graph.style(style());
  document.addEventListener("theme", recolour);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  new ResizeObserver(() => graph.resize()).observe(place);

  load(start, FIRST);
})();
