// Learning curves of a run, drawn anew while it goes on.

import { byId, fill, h, options, s } from "./dom.js";

const SIZE = { width: 900, height: 340, left: 46, right: 96, top: 16, bottom: 38 };
const DASHES = ["", "7 4", "2 3", "9 3 2 3", "1 5", "12 4"];
const EVERY = 2000;
const NAME_HEIGHT = 14;

export class CurvesTab {
  constructor(ask) {
    this.ask = ask;
    this.run = byId("run");
    this.status = byId("run-status");
    this.sheet = byId("curves");
    this.size = -1;
    this.run.addEventListener("change", () => this.#request(-1));
  }

  open() {
    this.ask("runs");
    this.timer ??= setInterval(() => this.run.value && this.#request(this.size), EVERY);
  }

  close() {
    clearInterval(this.timer);
    this.timer = null;
  }

  know(runs) {
    const chosen = runs.includes(this.run.value) ? this.run.value : runs[0];
    options(this.run, runs, chosen);
    if (runs.length) this.#request(-1);
    else this.fail("No run is here yet. Start one with skillstack train, or name a folder of runs with --runs.");
  }

  #request(known) {
    this.size = known;
    this.ask("curves", { run: this.run.value, known });
  }

  fail(message) {
    fill(this.sheet, h("p", { class: "quiet", text: message }));
  }

  show(told) {
    if (told.run !== this.run.value) return;
    this.size = told.size;
    if (!told.stages) {
      this.status.textContent = "up to date";
      return;
    }
    const now = told.stages.at(-1);
    if (!now) return this.fail("This run has not finished a turn yet.");
    const episodes = now.points.at(-1)[0];
    this.status.textContent = `${episodes.toLocaleString("en")} episodes, stage ${now.level}${now.learned ? ", ended" : `, ${now.phase} phase`}`;
    fill(this.sheet, h("div", { class: "wide" }, draw(told.stages)), key(told.stages));
  }
}

function skillsOf(stages) {
  return [...new Set(stages.flatMap((stage) => stage.points.flatMap((point) => Object.keys(point[1]))))];
}

function draw(stages) {
  const { width, height, left, right, top, bottom } = SIZE;
  const most = stages.at(-1).points.at(-1)[0];
  const x = (episodes) => left + ((width - left - right) * episodes) / Math.max(most, 1);
  const y = (share) => top + (height - top - bottom) * (1 - share);
  const skills = skillsOf(stages);
  const marks = stages.flatMap((stage) => [
    s("rect", { class: `stage-band${stage.level % 2 ? " odd" : ""}`, x: x(stage.begins), y: top, width: Math.max(x(stage.points.at(-1)[0]) - x(stage.begins), 0), height: height - top - bottom }),
    s("text", { class: "stage-name", x: x(stage.begins) + 6, y: top + 16, text: `stage ${stage.level}` }),
    ...stage.switches.map((at) => s("g", { class: "switch" }, s("line", { x1: x(at), x2: x(at), y1: top, y2: height - bottom }),
      s("text", { x: x(at) + 5, y: height - bottom - 8, text: "all tasks" }), s("title", { text: `all tasks from episode ${at}` }))),
  ]);
  return s("svg", { class: "curves", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Success of ${skills.join(", ")} over ${most} episodes` },
    ...marks,
    ...[0, 0.25, 0.5, 0.75, 1].map((share) => s("g", { class: "grid" }, s("line", { x1: left, x2: width - right, y1: y(share), y2: y(share) }),
      s("text", { x: left - 8, y: y(share) + 4, text: `${100 * share} %` }))),
    ...[0.25, 0.5, 0.75, 1].map((part) => s("text", { class: "tick", x: x(part * most), y: height - bottom + 20, text: Math.round(part * most).toLocaleString("en") })),
    s("text", { class: "tick", x: left, y: height - bottom + 20, text: "0" }),
    s("text", { class: "axis", x: (left + width - right) / 2, y: height - 2, text: "episodes" }),
    ...skills.flatMap((skill, number) => lines(stages, skill, number, x, y)),
    ...names(stages, skills, x, y));
}

/** Each skill's name where its curve ends, moved apart where they would meet. */
function names(stages, skills, x, y) {
  const ends = skills.map((skill, number) => {
    const [episodes, windows] = stages.flatMap((stage) => stage.points).filter((point) => skill in point[1]).at(-1);
    return { skill, number, x: x(episodes) + 8, y: y(windows[skill]) + 4 };
  }).sort((a, b) => a.y - b.y);
  ends.forEach((end, place) => {
    if (place) end.y = Math.max(end.y, ends[place - 1].y + NAME_HEIGHT);
  });
  return ends.map((end) => s("text", { class: "curve-name", x: end.x, y: end.y, text: end.skill, style: { fill: `var(--curve-${end.number % 6})` } }));
}

function lines(stages, skill, number, x, y) {
  const paths = stages.map((stage) => stage.points.filter((point) => skill in point[1]).map((point) => [x(point[0]), y(point[1][skill])]));
  return paths.filter((points) => points.length).map((points) => s("polyline", {
    class: "curve", "data-skill": skill, points: points.map((point) => point.map((part) => part.toFixed(1)).join(",")).join(" "),
    "stroke-dasharray": DASHES[number % DASHES.length], style: { stroke: `var(--curve-${number % 6})` },
  }));
}

function key(stages) {
  const last = stages.at(-1).points.at(-1)[1];
  return h("p", { class: "legend" }, ...skillsOf(stages).map((skill, number) => h("span", {},
    s("svg", { class: "dash", viewBox: "0 0 30 8", width: 30, height: 8 },
      s("line", { x1: 0, x2: 30, y1: 4, y2: 4, "stroke-dasharray": DASHES[number % DASHES.length], style: { stroke: `var(--curve-${number % 6})` } })),
    `${skill}${skill in last ? ` ${(100 * last[skill]).toFixed(1)} %` : ""}`)));
}
