// One player's side of the page: what it sees, the map, what it says, its plan, and why it decides as it does.

import { fill, h } from "./dom.js";
import { MapView } from "./map.js";
import { legend, showOdds } from "./odds.js";
import { apply, chainAt, GLYPHS, SIGNS } from "./plan.js";
import { TreeView } from "./tree.js";

export class Lane {
  constructor(player, scene, onArrange) {
    this.scene = scene;
    this.acts = [];
    this.film = []; // {act, moment}: everything that can be scrubbed through
    this.preview = null;
    this.pinned = null;
    this.level = null; // of the decision that is explained; null follows the newest
    this.position = 0;
    this.map = new MapView(scene, onArrange);
    this.#build(player);
    scene.levels.forEach((colour, level) => document.documentElement.style.setProperty(`--paper-level-${level}`, colour));
  }

  #build(player) {
    this.view = h("img", { class: "view", alt: "What the agent sees", width: 84, height: 84 });
    this.hand = h("span", { class: "hand" });
    this.name = h("span", { class: "player", text: player });
    this.sentence = h("p", { class: "sentence" });
    this.chain = h("p", { class: "chain", "aria-label": "Who is telling whom to do what" });
    this.state = h("span", { class: "state", "aria-live": "polite" });
    this.forest = h("div", { class: "forest" });
    this.levels = h("div", { class: "levels", role: "group", "aria-label": "Whose decision" });
    this.bars = h("div", { class: "all-odds" });
    this.element = h("article", { class: "lane" },
      h("figure", { class: "sight-box" }, this.view, h("figcaption", {}, this.name, this.hand)),
      h("div", { class: "telling" }, h("h3", { class: "hidden", text: "In its own words" }), this.sentence, h("div", { class: "chain-row" }, this.chain, this.state)),
      h("figure", { class: "map-box" }, this.map.element,
        h("figcaption", { class: "hint", text: "Drag blocks and agent to other places; tap the agent to turn it." })),
      h("section", { class: "why", "aria-label": "Why" }, h("header", {}, h("h3", { text: "Why" }), legend()), this.levels, this.bars),
      h("section", { class: "plan", "aria-label": "Plan" }, h("h3", { text: "Plan" }), this.forest));
  }

  get length() {
    return this.film.length;
  }

  get current() {
    return this.film[Math.min(this.position, this.film.length - 1)];
  }

  get act() {
    return this.current?.act ?? null;
  }

  showPreview(look, player) {
    this.preview = look;
    this.acts = [];
    this.film = [];
    this.pinned = null;
    this.name.textContent = player;
    fill(this.forest, h("p", { class: "quiet", text: "The plan grows here, level by level, as it happens." }));
    this.show(0);
  }

  /** A new act: one instruction, one plan. */
  beginAct(about) {
    if (about.fresh) {
      this.acts = [];
      this.film = [];
      fill(this.forest);
    }
    const before = this.acts.at(-1);
    if (before && !before.ended) before.label.textContent = "interrupted";
    const tree = new TreeView(this.scene, (decision) => this.pin(decision));
    const label = h("span", { class: "how" });
    const title = h("h4", { class: "act-title" }, h("q", { text: about.instruction }), " ", h("span", { text: about.player }), label);
    const act = { ...about, root: null, tree, label, moments: [], ended: false };
    act.element = h("div", { class: "act", "data-act": about.act }, title, tree.element);
    this.acts.push(act);
    this.forest.append(act.element);
    this.name.textContent = about.player;
    return act;
  }

  addMoment(event) {
    const act = this.acts.at(-1);
    act.root = apply(act.root, event.patch);
    act.moments.push({ frame: event.frame, state: event.state, sentence: event.sentence });
    this.film.push({ act, moment: act.moments.length - 1 });
    act.ended = event.ended;
    this.#grow(act);
  }

  /** A whole recorded act at once. */
  loadReel(reel) {
    const act = this.beginAct({ act: reel.act, player: reel.player || "recorded", instruction: reel.plan.root.instruction, seed: reel.plan.seed, fresh: true });
    act.root = reel.plan.root;
    act.moments = reel.moments.map(({ step, sentence }) => ({ frame: reel.frames[step], state: reel.states[step], sentence }));
    this.film = act.moments.map((_, moment) => ({ act, moment }));
    act.ended = true;
    this.#grow(act);
  }

  /** Stand still until so many moments are there, so that two lanes stay side by side. */
  pad(length) {
    while (this.film.length && this.film.length < length) this.film.push(this.film.at(-1));
  }

  #grow(act) {
    const frames = (moment) => act.moments[moment]?.frame;
    act.tree.grow(act.root, frames);
    act.tree.pictures(frames);
    const { outcome } = act.root;
    act.label.textContent = outcome ? `${SIGNS[outcome]} ${outcome}` : "";
    act.label.dataset.outcome = outcome;
  }

  pin(decision) {
    this.pinned = this.pinned === decision ? null : decision;
    this.show(this.position);
  }

  show(position) {
    this.position = position;
    const entry = this.current;
    const now = entry ? entry.act.moments[entry.moment] : this.preview;
    if (!now) return;
    this.view.src = now.frame;
    this.hand.textContent = now.state.held ? `${now.state.held} block in hand` : "hand empty";
    this.map.show(now.state, this.#path());
    this.sentence.textContent = entry ? now.sentence : "I wait for you to say go.";
    const outcome = entry && entry.moment === entry.act.moments.length - 1 ? entry.act.root.outcome : "";
    this.state.textContent = outcome ? `${SIGNS[outcome]} ${outcome}` : "";
    this.state.dataset.outcome = outcome;
    for (const act of this.acts) {
      const begun = entry && this.acts.indexOf(act) <= this.acts.indexOf(entry.act);
      act.element.classList.toggle("later", !begun);
      act.element.classList.toggle("here", act === entry?.act);
      act.tree.show(act === entry?.act ? entry.moment : begun ? act.moments.length - 1 : 0);
    }
    this.#explain(entry);
  }

  /** Where the agent has been since the game began. */
  #path() {
    const seen = this.film.slice(0, this.position + 1).map(({ act, moment }) => act.moments[moment].state.agent);
    return seen.filter((place, number) => !number || place.x !== seen[number - 1].x || place.z !== seen[number - 1].z)
      .map(({ x, z }) => [x, z]);
  }

  #explain(entry) {
    const chain = entry ? chainAt(entry.act.root, entry.moment - 1) : [];
    fill(this.chain, ...this.#chainWords(chain));
    const newest = chain.filter(([, decision]) => decision.odds?.switch).reduce((best, link) => (!best || link[1].step > best[1].step ? link : best), null);
    const byLevel = this.level === null ? null : chain.find(([run]) => run.level === this.level);
    const decision = this.pinned ?? (byLevel ?? newest ?? chain.at(-1))?.[1] ?? null;
    fill(this.levels, ...chain.map(([run, made]) => h("button", {
      type: "button", "aria-pressed": String(made === decision), style: { "--hue": `var(--level-${run.level})` },
      title: `${run.instruction}, level ${run.level}`,
      onclick: () => {
        this.level = this.level === run.level ? null : run.level;
        this.pinned = null;
        this.show(this.position);
      },
    }, "π", h("sub", { text: run.level }))));
    showOdds(this.bars, decision);
    for (const act of this.acts) act.tree.select(decision);
  }

  /** Told once where an instruction is only handed down. */
  #chainWords(chain) {
    const words = [];
    for (const [run] of chain) {
      if (words.at(-1)?.textContent !== run.instruction) {
        words.push(h("span", { class: "link-word", text: run.instruction, style: { "--hue": `var(--level-${run.level})` } }));
      }
    }
    const last = chain.at(-1)?.[1];
    if (last) {
      const action = last.action === null ? `“${last.utterance}” cannot be done now` : `${GLYPHS[last.action] ?? ""} ${last.action}`;
      words.push(h("span", { class: "link-word action", text: action }));
    }
    return words.flatMap((word, number) => (number ? [h("i", { text: "›" }), word] : [word]));
  }
}
