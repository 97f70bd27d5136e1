// Driving the agent oneself: keys, and the same keys to tap.

import { fill, h } from "./dom.js";
import { GLYPHS } from "./plan.js";

export const KEYS = {
  ArrowUp: "move forward", ArrowDown: "move backward", ArrowLeft: "turn left", ArrowRight: "turn right",
  a: "move left", d: "move right", w: "move forward", s: "move backward", q: "turn left", e: "turn right",
  p: "pick up", l: "put down",
};

const PAD = [
  ["turn left", "move forward", "turn right", "pick up"],
  ["move left", "move backward", "move right", "put down"],
];
const HINTS = { "turn left": "←", "turn right": "→", "move forward": "↑", "move backward": "↓", "move left": "A", "move right": "D", "pick up": "P", "put down": "L" };

/** Buttons for all actions, each with its key. */
export function makePad(act) {
  const pad = h("div", { class: "pad", role: "group", "aria-label": "Drive the agent" });
  fill(pad, ...PAD.map((row) => h("div", {}, ...row.map((action) => h("button", {
    type: "button", "data-act": action, title: action, onclick: () => act(action),
  }, h("b", { text: GLYPHS[action], "aria-hidden": "true" }), h("span", { text: action }), h("kbd", { text: HINTS[action], "aria-hidden": "true" }))))));
  return pad;
}
