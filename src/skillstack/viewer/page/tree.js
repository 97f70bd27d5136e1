// The plan as it grows: a row for each level, time from left to right, a bar for each run with its parts beneath it.

import { fill, h } from "./dom.js";
import { GLYPHS, SIGNS } from "./plan.js";

export class TreeView {
  constructor(scene, onSelect) {
    this.scene = scene;
    this.onSelect = onSelect;
    this.gutter = h("div", { class: "gutter", "aria-hidden": "true" });
    this.root = h("div", { class: "branches", role: "tree", "aria-label": "The plan" });
    this.element = h("div", { class: "tree" }, this.gutter, this.root);
    this.root.addEventListener("keydown", (event) => this.#walk(event));
    this.clear();
  }

  clear() {
    this.nodes = [];
    this.events = 0;
    this.top = null;
    this.at = -1;
    fill(this.root);
    fill(this.gutter);
  }

  /** Take in what has come; `frames` gives the picture after an event. */
  grow(run, frames) {
    if (!this.top) {
      this.top = this.#run(run, null);
      this.root.append(this.top.element);
      const levels = Array.from({ length: run.level + 1 }, (_, place) => run.level - place);
      fill(this.gutter, ...levels.map((level) => h("span", { style: { "--hue": `var(--level-${level})` } }, "π", h("sub", { text: level }))));
      this.#roving(this.top.element);
    }
    this.#grow(this.top, run, frames);
  }

  #grow(node, run, frames) {
    for (let place = Math.max(node.parts.length - 1, 0); place < run.decisions.length; place += 1) {
      const decision = run.decisions[place];
      if (place === node.parts.length) {
        const part = decision.run ? this.#run(decision.run, decision) : this.#leaf(decision, run);
        node.parts.push(part);
        node.below.append(part.element);
      }
      if (decision.run) this.#grow(node.parts[place], decision.run, frames);
      node.last = Math.max(node.last, node.parts[place].last);
    }
    if (run.outcome && !node.ended) this.#end(node, run, frames);
  }

  #end(node, run, frames) {
    node.ended = true;
    node.element.dataset.outcome = run.outcome;
    node.element.dataset.lastStep = run.last_step;
    node.sign.textContent = SIGNS[run.outcome] ?? "";
    node.sign.title = run.outcome;
    node.head.setAttribute("aria-label", `${run.instruction}: ${run.outcome}, level ${run.level}`);
    if (run.level === 0 && run.decisions.length) this.#picture(node, node.last, frames);
  }

  #run(run, decision) {
    const [skill, item] = run.instruction.split(" ");
    const sign = h("span", { class: "sign" });
    const colour = this.scene.colours[item];
    const words = h("span", { class: "words" },
      h("i", { class: "wool", style: colour ? { background: colour } : {} }), h("q", { text: `${skill} ${item}` }), sign);
    const head = h("div", { class: "head" }, words);
    const below = h("div", { class: "below", role: "group" });
    const element = h("div", {
      class: "run", role: "treeitem", tabindex: "-1", "data-level": run.level, "data-instruction": run.instruction,
      "data-outcome": "", "data-first-step": run.first_step, "data-last-step": 0,
      "aria-label": `${run.instruction}, level ${run.level}`, style: { "--hue": `var(--level-${run.level})` },
    }, head, below);
    const node = { element, head, below, sign, parts: [], first: this.events, last: -1, ended: false, decision };
    this.nodes.push(node);
    if (decision) this.#selectable(node, head, decision);
    return node;
  }

  #leaf(decision, run) {
    const refused = decision.action === null;
    const own = run.level > 0;
    const text = refused ? decision.utterance : decision.action;
    const inner = refused
      ? [h("q", { text }), h("span", { class: "sign", text: SIGNS["not executable"], title: "not executable" })]
      : [h("b", { class: "cap", text: GLYPHS[text] ?? text.slice(0, 2), "aria-hidden": "true" }), own ? h("span", { text }) : null];
    const element = h("div", {
      class: `leaf${refused ? " refused" : ""}${own ? " own" : ""}`, role: "treeitem", tabindex: "-1", title: text,
      "aria-label": refused ? `${text}: not executable` : text, "data-step": decision.step,
      "data-action": decision.action ?? "", "data-utterance": decision.utterance ?? "",
      style: { "--hue": `var(--level-${run.level})` },
    }, ...inner);
    const node = { element, first: this.events, last: this.events, decision, leaf: true };
    this.events += 1;
    this.nodes.push(node);
    this.#selectable(node, element, decision);
    if (own && !refused) node.wantsPicture = true;
    return node;
  }

  /** What was seen right after an event, beneath the part that led there. */
  #picture(node, event, frames) {
    const source = frames(event + 1);
    if (source) node.element.append(h("img", { class: "thumb", src: source, alt: "", width: 52, height: 52 }));
  }

  /** Own actions get their pictures once the frame is there. */
  pictures(frames) {
    for (const node of this.nodes) {
      if (node.wantsPicture && frames(node.last + 1)) {
        node.wantsPicture = false;
        this.#picture(node, node.last, frames);
      }
    }
  }

  /** Light up what is active after so many moments, and fade what is yet to come. */
  show(moments) {
    const event = moments - 1;
    let now = this.top;
    for (const node of this.nodes) {
      const future = node !== this.top && node.first > event;
      const active = node === this.top || (!future && node.last >= event);
      const { classList } = node.element;
      classList.toggle("future", future);
      classList.toggle("active", active);
      if (!node.leaf) classList.toggle("open", !node.ended || node.last > event);
      if (active && node.leaf) now = node;
    }
    this.at = event;
    if (now) this.#keepInView(now.element);
  }

  select(decision) {
    for (const node of this.nodes) node.element.classList.toggle("selected", Boolean(decision) && node.decision === decision);
  }

  #selectable(node, target, decision) {
    target.addEventListener("click", (event) => {
      event.stopPropagation();
      this.onSelect(decision);
      this.#roving(node.element);
    });
  }

  #keepInView(element) {
    const view = this.element;
    if (view.matches(":hover") || view.contains(document.activeElement)) return;
    const [outer, inner] = [view.getBoundingClientRect(), element.getBoundingClientRect()];
    if (inner.right > outer.right - 40) view.scrollLeft += inner.right - outer.right + 80;
    else if (inner.left < outer.left + 60) view.scrollLeft += inner.left - outer.left - 80;
  }

  #roving(element) {
    this.root.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
    element.setAttribute("tabindex", "0");
  }

  /** Arrow keys walk the tree: along time, and up and down the levels. */
  #walk(event) {
    const here = event.target.closest('[role="treeitem"]');
    const node = this.nodes.find((one) => one.element === here);
    if (!node) return;
    if (event.key === "Enter" && node.decision) this.onSelect(node.decision);
    const place = this.nodes.indexOf(node);
    const next = {
      ArrowRight: () => this.nodes[place + 1]?.element,
      ArrowLeft: () => this.nodes[place - 1]?.element,
      ArrowUp: () => here.parentElement.closest('[role="treeitem"]'),
      ArrowDown: () => here.querySelector('[role="treeitem"]'),
    }[event.key]?.();
    if (!(event.key.startsWith("Arrow") || event.key === "Enter")) return;
    event.preventDefault();
    event.stopPropagation();
    if (!next) return;
    this.#roving(next);
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}
