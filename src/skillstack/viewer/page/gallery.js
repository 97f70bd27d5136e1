// Recorded games as cards.

import { byId, fill, h } from "./dom.js";
import { SIGNS } from "./plan.js";

export class GalleryTab {
  constructor(ask) {
    this.ask = ask;
    this.cards = byId("cards");
  }

  open() {
    if (!this.cards.childElementCount) fill(this.cards, h("p", { class: "quiet", text: "Playing the recorded games again ..." }));
    this.ask("gallery");
  }

  show(games) {
    if (!games.length) fill(this.cards, h("p", { class: "quiet", text: "No recorded game yet. Play one, and keep it." }));
    else fill(this.cards, ...games.map((game) => this.#card(game)));
  }

  #card(game) {
    const facts = `${game.player ? `${game.player}, ` : ""}${game.steps} step${game.steps === 1 ? "" : "s"}, ${game.room} room, seed ${game.seed}`;
    return h("button", { class: "card", type: "button", "data-name": game.name, onclick: () => this.ask("open", { name: game.name }) },
      h("img", { src: game.picture, alt: "", width: 84, height: 84 }),
      h("span", { class: "card-text" },
        h("strong", {}, h("q", { text: game.instruction }), h("span", { class: "how", "data-outcome": game.outcome, text: `${SIGNS[game.outcome]} ${game.outcome}` })),
        h("span", { class: "told", text: game.sentence }), h("small", { text: facts })));
  }
}
