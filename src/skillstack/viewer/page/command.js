// The line in which one tells the agent what to do: typing with completion, or picking from all that it knows.

import { byId, fill, h } from "./dom.js";

export class Command {
  constructor(onChange) {
    this.input = byId("instruction");
    this.picker = byId("picker");
    this.message = byId("message");
    this.onChange = onChange;
    this.words = { skills: [], items: [] };
    this.colours = {};
    this.active = -1;
    this.input.addEventListener("input", () => {
      this.#suggest();
      if (this.#isWhole()) this.onChange(); // so that one sees the room that it is about
    });
    this.input.addEventListener("focus", () => this.#suggest());
    this.input.addEventListener("blur", () => setTimeout(() => this.close(), 120));
    this.input.addEventListener("keydown", (event) => this.#key(event));
    this.input.addEventListener("change", () => this.onChange());
  }

  get text() {
    return this.input.value.trim();
  }

  know(skills, items, colours) {
    this.words = { skills, items };
    this.colours = colours ?? this.colours;
  }

  say(message, kind = "error") {
    this.message.textContent = message;
    this.message.dataset.kind = kind;
    this.input.toggleAttribute("aria-invalid", Boolean(message) && kind === "error");
  }

  /** All instructions that what was typed may become. */
  #matches() {
    const [first = "", second = ""] = this.input.value.toLowerCase().trim().split(/\s+/);
    const whole = this.words.skills.flatMap((skill) => this.words.items.map((item) => [skill, item]));
    if (this.input.selectionStart === 0 && this.input.selectionEnd === this.input.value.length) return whole;
    return whole.filter(([skill, item]) => (skill.startsWith(first) && item.startsWith(second)) || (!second && item.startsWith(first)));
  }

  #isWhole() {
    const [skill, item, ...more] = this.text.split(/\s+/);
    return !more.length && this.words.skills.includes(skill) && this.words.items.includes(item);
  }

  #suggest() {
    const matches = this.#matches();
    this.active = -1;
    const rows = this.words.skills.map((skill) => [skill, matches.filter(([one]) => one === skill)]).filter(([, row]) => row.length);
    fill(this.picker, ...rows.map(([skill, row]) => h("div", { class: "picks", role: "presentation" },
      h("span", { class: "skill", text: skill, "aria-hidden": "true" }),
      ...row.map((words) => this.#option(words)))));
    this.#open(rows.length > 0);
  }

  #option([skill, item]) {
    const text = `${skill} ${item}`;
    return h("div", {
      class: "pick", role: "option", id: `pick-${skill}-${item}`, "data-text": text, "aria-selected": "false", "aria-label": text,
      onpointerdown: (event) => {
        event.preventDefault();
        this.#take(text);
      },
    }, h("i", { class: "wool", style: { background: this.colours[item] ?? "transparent" } }), item);
  }

  #open(open) {
    this.picker.hidden = !open;
    this.input.setAttribute("aria-expanded", String(open));
    if (!open) this.input.removeAttribute("aria-activedescendant");
  }

  close() {
    this.#open(false);
  }

  #take(text) {
    this.input.value = text;
    this.close();
    this.onChange();
  }

  #key(event) {
    const choices = [...this.picker.querySelectorAll(".pick")];
    const open = !this.picker.hidden && choices.length > 0;
    if (event.key === "Escape") this.close();
    else if (open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      const move = event.key === "ArrowDown" ? 1 : -1;
      this.active = (this.active + move + choices.length + (this.active < 0 && move < 0 ? 1 : 0)) % choices.length;
      choices.forEach((choice, place) => choice.setAttribute("aria-selected", String(place === this.active)));
      this.input.setAttribute("aria-activedescendant", choices[this.active].id);
      choices[this.active].scrollIntoView({ block: "nearest" });
      event.preventDefault();
    } else if (open && (event.key === "Tab" || event.key === "Enter") && (this.active >= 0 || choices.length === 1)) {
      const text = choices[Math.max(this.active, 0)].dataset.text;
      if (text !== this.text) {
        this.#take(text);
        if (event.key === "Tab") event.preventDefault();
      }
    }
  }
}
