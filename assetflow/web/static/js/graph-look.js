// How the boxes and lines of the graph look: their labels, colours and signs. Text of users is drawn as text only.
"use strict";

const GraphLook = (() => {
  const WIDTH = 196;
  const HEIGHT = 42;
  // Left of it is the sign of a state, at the other end the plus of a node that goes on.
  const LEFT = 28;
  const RIGHT = 28;
  // A frame has its name above its members.
  const TITLE = 34;
  // A line leaves a box, and enters one, straight for so long.
  const LEAD = 16;

  const visible = (text) =>
    text.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);
  // The end of a URI and the beginning of a name tell the most.
  const cut = (text, most) => {
    if (text.length <= most) return text;
    return text.includes("://") ? `…${text.slice(1 - most)}` : `${text.slice(0, most - 1)}…`;
  };
  const ago = (at) => {
    const seconds = Math.max(0, Date.now() / 1000 - at);
    for (const [size, unit, name] of [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"]]) {
      if (seconds < size) return `${Math.floor(seconds / unit)} ${name} ago`;
    }
    return `${Math.floor(seconds / 86400)} d ago`;
  };
  const label = (node) => {
    if (node.kind === "entry") return node.name;
    if (node.kind === "frame") return [cut(visible(node.name), 40), node.state].filter(Boolean).join("   ");
    const name = node.kind === "alias" ? `alias ${node.name}` : node.name;
    const second = [node.state === "updated" ? "" : node.state, node.at ? ago(node.at) : ""].filter(Boolean).join(" · ");
    return `${cut(visible(name), 23)}\n${cut(visible(second), 26)}`;
  };

  // The control points of a line, as Cytoscape wants them: how far along the straight line between its ends, and how
  // far beside it. The line is level where it crosses a column, and curved between two columns.
  const bends = (source, target, points) => {
    const start = { x: source.x + WIDTH / 2, y: source.y };
    const end = { x: target.x - WIDTH / 2, y: target.y };
    const way = [{ x: start.x + LEAD, y: start.y }];
    const spots = [];
    for (let at = 0; at < points.length; at += 2) spots.push({ x: points[at], y: points[at + 1] });
    spots.forEach((spot, at) => {
      const [before, after] = [spots[at - 1], spots[at + 1]];
      const ahead = after && after.y === spot.y ? after.x - spot.x : before && before.y === spot.y ? spot.x - before.x : 1;
      const lead = ahead < 0 ? -LEAD : LEAD;
      way.push({ x: spot.x - lead, y: spot.y }, spot, { x: spot.x + lead, y: spot.y });
    });
    way.push({ x: end.x - LEAD, y: end.y });
    const [dx, dy] = [end.x - start.x, end.y - start.y];
    const square = dx * dx + dy * dy || 1;
    const along = (spot) => ((spot.x - start.x) * dx + (spot.y - start.y) * dy) / square;
    const beside = (spot) => ((spot.y - start.y) * dx - (spot.x - start.x) * dy) / Math.sqrt(square);
    return { weights: way.map(along), distances: way.map(beside) };
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
    // A drawing of signs.css in a colour; a canvas is sharper if it is larger than it is shown.
    const sign = (name, tint) => {
      const found = read.getPropertyValue(`--sign-${name}`).match(/data:image[^"]*/);
      const large = found && found[0].replace(/(width|height)='12'/g, "$1='36'").replaceAll("black", encodeURIComponent(colour(tint)));
      return large ? large.replaceAll("<", "%3C").replaceAll(">", "%3E") : "none";
    };
    const strong = colour("border-strong");
    const accent = colour("accent");
    const TINTS = { good: "good", busy: "busy", bad: "bad", missing: "bad", wait: "wait", pause: "wait", stale: "wait", outdated: "good", off: "off" };
    const plus = sign("more", "text-soft");
    const pictures = (names, more) => ({
      "background-image": [...names, ...(more ? [plus] : [])],
      "background-width": [...names.map(() => "12px"), ...(more ? ["14px"] : [])],
      "background-height": [...names.map(() => "12px"), ...(more ? ["14px"] : [])],
      "background-position-x": [...names.map(() => "9px"), ...(more ? [`${WIDTH - 23}px`] : [])],
      "background-position-y": [...names.map(() => "15px"), ...(more ? ["14px"] : [])],
    });
    const signs = Object.entries(TINTS).flatMap(([name, tint]) => [
      { selector: `node[sign = '${name}']`, style: pictures([sign(name, tint)], false) },
      { selector: `node[sign = '${name}'][?more]`, style: pictures([sign(name, tint)], true) },
    ]);
    const tinted = (names, tint) => ({
      selector: names.map((name) => `node[sign = '${name}']`).join(", "),
      style: { "border-color": colour(tint), "background-color": colour(`${tint}-back`) },
    });
    return [
      {
        selector: "node",
        style: {
          shape: "rectangle", width: WIDTH, height: HEIGHT, label: "data(label)", "text-wrap": "wrap", "line-height": 1.25,
          "font-family": read.getPropertyValue("--font"), "font-size": 12, "min-zoomed-font-size": 9, color: colour("text"),
          "text-valign": "center", "text-halign": "right", "text-justification": "left", "text-margin-x": LEFT - WIDTH,
          "background-color": colour("card"), "border-width": 1.5, "border-color": strong,
        },
      },
      { selector: "node[kind = 'flow']", style: { shape: "round-rectangle", "corner-radius": 20, "border-color": accent, "background-color": colour("flow-back") } },
      { selector: "node[kind = 'alias'], node[kind = 'name']", style: { "border-style": "dashed" } },
      { selector: "node[kind = 'group'], node[kind = 'more']", style: { "border-style": "double", "border-width": 4 } },
      tinted(["bad", "missing"], "bad"),
      tinted(["wait", "pause", "stale"], "wait"),
      {
        selector: "node[kind = 'entry']",
        style: {
          shape: "round-rectangle", "corner-radius": 9, width: "data(width)", height: "data(height)", "font-size": 12, "z-index": 2,
          "text-halign": "center", "text-justification": "center", "text-margin-x": 0, "border-color": accent, "background-fill": "linear-gradient",
          "background-gradient-direction": "to-right", "background-gradient-stop-colors": ["filled", "filled", "card", "card"].map((name) => colour(name).replaceAll(" ", "")).join(" "),
          "background-gradient-stop-positions": (node) => `0% ${node.data("part")}% ${node.data("part")}% 100%`,
        },
      },
      {
        selector: "node[kind = 'frame']",
        style: {
          shape: "round-rectangle", "corner-radius": 8, width: "data(width)", height: "data(height)", "font-weight": 600,
          "text-valign": "top", "text-margin-y": 24, "text-margin-x": (node) => 30 - node.data("width"), "text-wrap": "none",
          "background-color": colour("sunken"), "background-image": "none", "border-style": "dashed", "z-index-compare": "manual", "z-index": -1,
        },
      },
      { selector: "node[?more]", style: pictures([], true) },
      ...signs,
      { selector: "node[kind = 'frame']", style: { "background-position-y": "11px" } },
      { selector: "node.focus", style: { "border-width": 4, "border-color": accent } },
      {
        selector: "edge",
        style: {
          width: 1.6, "curve-style": "unbundled-bezier", "edge-distances": "endpoints", "control-point-weights": "data(weights)",
          "control-point-distances": "data(distances)", "line-color": strong, "target-arrow-color": strong,
          "target-arrow-shape": "triangle", "arrow-scale": 0.9, "source-endpoint": "90deg", "target-endpoint": "270deg",
        },
      },
      { selector: "edge.reads", style: { "line-style": "dashed", "target-arrow-fill": "hollow" } },
      { selector: "edge.links", style: { "line-style": "dotted" } },
      { selector: "edge.many", style: { "curve-style": "haystack", "haystack-radius": 0, width: 1, "target-arrow-shape": "none" } },
      { selector: "edge.stale", style: { "line-color": colour("stale-fill"), "target-arrow-color": colour("stale-fill"), width: 2.4 } },
      { selector: "edge.path", style: { "line-color": accent, "target-arrow-color": accent, width: 2.6 } },
      { selector: "node.path", style: { "border-color": accent } },
    ];
  };

  return { WIDTH, HEIGHT, RIGHT, TITLE, bends, label, style, visible };
})();
