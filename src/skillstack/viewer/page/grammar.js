// A task's grammar as a graph: its states in a row, steps onwards above it, steps back below it, likely ones thick.

import { byId, fill, h, options, s } from "./dom.js";
import { percent } from "./odds.js";

const NODE = { width: 104, height: 46, gap: 96 };

export class GrammarTab {
  constructor(ask) {
    this.ask = ask;
    this.agent = byId("grammar-agent");
    this.level = byId("grammar-level");
    this.task = byId("grammar-task");
    this.graph = byId("grammar-graph");
    this.agent.addEventListener("change", () => this.#choose());
    this.level.addEventListener("change", () => this.#request());
    this.task.addEventListener("change", () => this.#request());
  }

  know(agents, preferred) {
    this.agents = agents.filter((agent) => agent.grammar);
    options(this.agent, this.agents.map((agent) => agent.name), preferred);
    this.#choose(false);
  }

  open() {
    if (this.agents?.length) this.#request();
    else fill(this.graph, h("p", { class: "quiet", text: "No agent with a grammar is here. Start the viewer with --agent FOLDER." }));
  }

  #choose(request = true) {
    const agent = this.agents.find((one) => one.name === this.agent.value);
    if (!agent) return;
    const levels = Array.from({ length: agent.levels - 1 }, (_, place) => String(place + 1));
    options(this.level, levels, levels.at(-1));
    const tasks = agent.skills.flatMap((skill) => agent.items.map((item) => `${skill} ${item}`));
    const kept = tasks.includes(this.task.value) ? this.task.value : tasks.find((task) => task === "stack blue");
    options(this.task, tasks, kept ?? tasks.at(-1));
    if (request) this.#request();
  }

  #request() {
    this.ask("grammar", { agent: this.agent.value, instruction: this.task.value, level: Number(this.level.value) });
  }

  fail(message) {
    fill(this.graph, h("p", { class: "quiet", text: message }));
  }

  show(told) {
    fill(this.graph,
      h("header", { class: "graph-head" }, h("q", { text: told.task }), h("span", { text: ` ${told.origin}` })),
      told.steps.length ? h("div", { class: "wide" }, drawGraph(told)) : h("p", { class: "quiet", text: "Nothing has followed anything yet." }),
      h("p", { class: "quiet", text: told.caption }), table(told));
  }
}

function drawGraph({ states, steps, task }) {
  const pitch = NODE.width + NODE.gap;
  const above = Math.max(0, ...steps.map((step) => rise(step.to - step.from)));
  const below = Math.max(0, ...steps.map((step) => rise(step.from - step.to, true)));
  const middle = above + 30 + NODE.height / 2;
  const x = (place) => 12 + NODE.width / 2 + place * pitch;
  const size = [x(states.length - 1) + NODE.width / 2 + 12, middle + NODE.height / 2 + below + 26];
  const strong = [...steps].sort((a, b) => a.probability - b.probability);
  return s("svg", { class: "graph", viewBox: `0 0 ${size[0]} ${size[1]}`, width: size[0], height: size[1], role: "img", "aria-label": `The grammar of ${task}` },
    s("defs", {}, s("marker", { id: "tip", viewBox: "0 0 10 10", refX: 7, refY: 5, markerWidth: 17, markerHeight: 17, markerUnits: "userSpaceOnUse", orient: "auto" },
      s("path", { d: "M 0 0 L 10 5 L 0 10 z", class: "tip" }))),
    ...strong.map((step) => edge(step, x, middle)),
    ...states.map((state, place) => node(state, x(place), middle)),
    ...strong.map((step) => edgeLabel(step, x, middle)));
}

const rise = (span, back = false) => (span === 0 && !back ? 40 : span > 1 || (back && span > 0) ? 18 + 34 * span : 0);

function edge(step, x, middle) {
  const span = step.to - step.from;
  const look = { class: "edge", "marker-end": "url(#tip)", "stroke-width": 1.2 + 5 * step.probability, "stroke-opacity": 0.3 + 0.7 * step.probability, fill: "none" };
  const [half, high] = [NODE.width / 2, NODE.height / 2];
  if (span === 1) return s("path", { ...look, d: `M ${x(step.from) + half} ${middle} H ${x(step.to) - half - 6}` });
  if (span === 0) {
    const top = middle - high;
    return s("path", { ...look, d: `M ${x(step.from) - 12} ${top} c -22 -46 46 -46 25 -7` });
  }
  const side = span > 0 ? -1 : 1;
  const [from, to] = [x(step.from) + (span > 0 ? half : -half) * 0.6, x(step.to) - (span > 0 ? half : -half) * 0.6];
  const y = middle + side * high;
  const bend = y + side * (span > 0 ? rise(span) : rise(-span, true)) * 1.3;
  return s("path", { ...look, d: `M ${from} ${y} C ${from} ${bend} ${to} ${bend} ${to} ${y + side * 6}` });
}

function edgeLabel(step, x, middle) {
  const span = step.to - step.from;
  const across = x(step.from + span / 2);
  const up = middle - NODE.height / 2;
  const y = span === 1 ? middle - 12 : span === 0 ? up - 44 : span > 0 ? up - rise(span) : middle + NODE.height / 2 + rise(-span, true);
  return s("text", { class: "edge-label", x: across, y, text: percent(step.probability) }, s("title", { text: `${step.count} times` }));
}

function node(state, x, middle) {
  return s("g", { class: `state ${state.kind}` },
    s("rect", { x: x - NODE.width / 2, y: middle - NODE.height / 2, width: NODE.width, height: NODE.height, rx: state.kind === "call" ? 9 : NODE.height / 2 }),
    s("text", { x, y: middle + (state.ends ? -2 : 5), text: state.name }),
    state.ends ? s("text", { class: "ends", x, y: middle + 14, text: `ends ${state.ends}` }) : null);
}

function table({ states, steps }) {
  const rows = steps.map((step) => h("tr", {}, h("td", { text: states[step.from].name }), h("td", { text: states[step.to].name }),
    h("td", { text: percent(step.probability) }), h("td", { text: step.count })));
  return h("details", { class: "as-table" }, h("summary", { text: "As a table" }),
    h("table", { id: "grammar-table" }, h("thead", {}, h("tr", {}, ...["after", "comes", "share", "times"].map((text) => h("th", { text })))),
      h("tbody", {}, ...rows)));
}
