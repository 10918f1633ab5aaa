// How the boxes and lines of the graph look: their labels, colours and signs. Text of users is drawn as text only.
"use strict";

const GraphLook = (() => {
  const WIDTH = 196;
  const HEIGHT = 42;
  // Left of it is the sign of a state, at the other end the plus of a node that goes on.
  const LEFT = 28;
  const RIGHT = 28;

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
    const name = node.kind === "alias" ? `alias ${node.name}` : node.name;
    const second = [node.state === "updated" ? "" : node.state, node.at ? ago(node.at) : ""].filter(Boolean).join(" · ");
    return `${cut(visible(name), 23)}\n${cut(visible(second), 26)}`;
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
          "font-family": read.getPropertyValue("--font"), "font-size": 12, "min-zoomed-font-size": 6, color: colour("text"),
          "text-valign": "center", "text-halign": "right", "text-justification": "left", "text-margin-x": LEFT - WIDTH,
          "background-color": colour("card"), "border-width": 1.5, "border-color": strong,
        },
      },
      { selector: "node[kind = 'flow']", style: { shape: "round-rectangle", "border-color": accent } },
      { selector: "node[kind = 'alias'], node[kind = 'name']", style: { "border-style": "dashed" } },
      { selector: "node[kind = 'group'], node[kind = 'more']", style: { "border-style": "double", "border-width": 4 } },
      tinted(["bad", "missing"], "bad"),
      tinted(["wait", "pause", "stale"], "wait"),
      { selector: "node[?more]", style: pictures([], true) },
      ...signs,
      { selector: "node.focus", style: { "border-width": 4, "border-color": accent } },
      {
        selector: "edge",
        style: {
          width: 1.6, "curve-style": "bezier", "line-color": strong, "target-arrow-color": strong,
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

  return { WIDTH, HEIGHT, RIGHT, label, style, visible };
})();
