// The rooms from above: the agent, the blocks with their names, the way it came; before a run everything can be moved.

import { fill, inkOn, s } from "./dom.js";

const CELL = 40;
const TURNS = { north: 0, east: 90, south: 180, west: 270 };
const CLOCKWISE = ["north", "east", "south", "west"];

export class MapView {
  constructor(scene, onArrange) {
    this.scene = scene;
    this.onArrange = onArrange;
    this.movable = false;
    const rooms = scene.rooms;
    const width = Math.max(...rooms.map((room) => room[2])) + 2;
    const depth = Math.max(...rooms.map((room) => room[3])) + 2;
    this.floors = s("g", {}, ...rooms.flatMap((room) => floor(room, scene.floors[room[4]])));
    this.path = s("polyline", { class: "path", points: "" });
    this.things = s("g", {});
    this.element = s("svg", {
      class: "map", viewBox: `${CELL * 0.6} ${CELL * 0.6} ${(width - 1.2) * CELL} ${(depth - 1.2) * CELL}`, role: "group", "aria-label": "The room from above",
    }, s("rect", { class: "wall", x: CELL * 0.6, y: CELL * 0.6, width: (width - 1.2) * CELL, height: (depth - 1.2) * CELL, rx: 8 }), this.floors, this.path, this.things);
  }

  show(state, path) {
    this.state = state;
    this.path.setAttribute("points", path.map(([x, z]) => `${centre(x)},${centre(z)}`).join(" "));
    const focused = document.activeElement?.dataset?.thing;
    const blocks = state.blocks.map((block, number) => ({ ...block, number })).sort((a, b) => a.y - b.y);
    fill(this.things, ...blocks.map((block) => this.#block(block)), this.#agent(state));
    if (focused && this.movable) this.things.querySelector(`[data-thing="${focused}"]`)?.focus({ preventScroll: true });
  }

  #block(block) {
    const inset = 4 + block.y * 6;
    const edge = CELL - 2 * inset;
    const colour = this.scene.colours[block.item];
    const top = !this.state.blocks.some((other) => other.x === block.x && other.z === block.z && other.y > block.y);
    const element = s("g", {
      class: `block${this.movable && top ? " movable" : ""}`, "data-thing": `block-${block.number}`, "data-item": block.item,
      "data-cell": `${block.x},${block.z}`, transform: `translate(${(block.x + 1) * CELL} ${(block.z + 1) * CELL})`,
      tabindex: this.movable && top ? 0 : null, role: this.movable && top ? "button" : null,
      "aria-label": `${block.item} block${this.movable ? ", arrow keys move it" : ""}`,
    },
    s("rect", { x: inset, y: inset, width: edge, height: edge, rx: 3, fill: colour, class: "face" }),
    s("rect", { x: inset, y: inset, width: edge, height: 5, rx: 2, class: "shine" }),
    s("text", { x: CELL / 2, y: CELL / 2 + 4, fill: inkOn(colour), class: "name", text: block.item }));
    if (this.movable && top) this.#drag(element, (x, z) => this.#moveBlock(block.number, x, z), [block.x, block.z]);
    return element;
  }

  #agent(state) {
    const { x, z, facing } = state.agent;
    const held = state.held && this.scene.colours[state.held];
    const element = s("g", {
      class: `agent${this.movable ? " movable" : ""}`, "data-thing": "agent", "data-cell": `${x},${z}`, "data-facing": facing,
      transform: `translate(${(x + 1) * CELL} ${(z + 1) * CELL})`, tabindex: this.movable ? 0 : null,
      role: this.movable ? "button" : null,
      "aria-label": `the agent, facing ${facing}${this.movable ? ", arrow keys move it, R turns it" : ""}`,
    },
    s("g", { transform: `rotate(${TURNS[facing]} ${CELL / 2} ${CELL / 2})` },
      s("path", { class: "sight", d: `M ${CELL / 2} ${CELL / 2} L ${-CELL * 0.1} ${-CELL * 0.38} L ${CELL * 1.1} ${-CELL * 0.38} Z` }),
      s("path", { class: "dart", d: "M 20 3 L 33 34 L 20 28 L 7 34 Z" })),
    held ? s("rect", { class: "held", x: 13, y: 17, width: 14, height: 14, rx: 2, fill: held }) : null);
    if (this.movable) this.#drag(element, (toX, toZ) => this.#moveAgent(toX, toZ), [x, z], () => this.#turn());
    return element;
  }

  #drag(element, drop, [x, z], tap) {
    element.addEventListener("keydown", (event) => {
      const move = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
      if (move) drop(x + move[0], z + move[1]);
      else if (tap && ["r", "R", "Enter"].includes(event.key)) tap();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    element.addEventListener("pointerdown", (begin) => {
      if (begin.button) return;
      begin.preventDefault();
      element.setPointerCapture(begin.pointerId);
      element.classList.add("dragged");
      const origin = this.#point(begin);
      let shift = [0, 0];
      const move = (event) => {
        const here = this.#point(event);
        shift = [here.x - origin.x, here.y - origin.y];
        element.setAttribute("transform", `translate(${(x + 1) * CELL + shift[0]} ${(z + 1) * CELL + shift[1]})`);
      };
      const end = (event) => {
        element.removeEventListener("pointermove", move);
        const to = [x + Math.round(shift[0] / CELL), z + Math.round(shift[1] / CELL)];
        if (event.type === "pointerup" && (to[0] !== x || to[1] !== z)) drop(...to);
        else if (event.type === "pointerup" && tap && Math.hypot(...shift) < 4) tap();
        else this.show(this.state, []);
      };
      element.addEventListener("pointermove", move);
      element.addEventListener("pointerup", end, { once: true });
      element.addEventListener("pointercancel", end, { once: true });
    });
  }

  #point(event) {
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(this.element.getScreenCTM().inverse());
  }

  #moveBlock(number, x, z) {
    const others = this.state.blocks.filter((_, place) => place !== number);
    const y = others.filter((block) => block.x === x && block.z === z).length;
    const blocks = this.state.blocks.map((block, place) => (place === number ? { ...block, x, z, y: Math.min(y, 1) } : block));
    this.onArrange(this.state.agent, blocks);
  }

  #moveAgent(x, z) {
    this.onArrange({ ...this.state.agent, x, z }, this.state.blocks);
  }

  #turn() {
    const facing = CLOCKWISE[(CLOCKWISE.indexOf(this.state.agent.facing) + 1) % 4];
    this.onArrange({ ...this.state.agent, facing }, this.state.blocks);
  }
}

const centre = (cell) => (cell + 1.5) * CELL;

function floor([x0, z0, x1, z1], colour) {
  const tiles = [];
  for (let x = x0; x < x1; x += 1) {
    for (let z = z0; z < z1; z += 1) {
      tiles.push(s("rect", { class: "tile", x: (x + 1) * CELL, y: (z + 1) * CELL, width: CELL, height: CELL, fill: colour }));
    }
  }
  return tiles;
}
