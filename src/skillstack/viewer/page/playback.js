// Where one is in the episode: following the live game, or going through what has been recorded of it.

import { byId } from "./dom.js";

export class Playback {
  constructor(lanes, send) {
    this.lanes = lanes; // a function: the lanes change with the game
    this.send = send;
    this.position = 0;
    this.live = false; // whether there is a game on the server that has not ended
    this.going = false; // whether that game goes on by itself
    this.timer = null; // of going through what is recorded
    this.scrubber = byId("scrubber");
    this.scrubber.addEventListener("input", () => this.seek(Number(this.scrubber.value)));
    byId("play").addEventListener("click", () => this.toggle());
    byId("back").addEventListener("click", () => this.seek(this.position - 1));
    byId("step").addEventListener("click", () => this.step());
    byId("speed").addEventListener("change", () => this.#pace());
  }

  get speed() {
    return Number(byId("speed").value);
  }

  get head() {
    return Math.max(...this.lanes().map((lane) => lane.length), 1) - 1;
  }

  get following() {
    return this.position >= this.head;
  }

  reset() {
    this.#stop();
    Object.assign(this, { position: 0, live: false, going: false });
    this.show();
  }

  /** A game has begun on the server. */
  begun(going) {
    this.#stop();
    Object.assign(this, { live: true, going, position: this.head });
    this.#pace();
    this.show();
  }

  /** Something new has come; `before` is where the head was. */
  grown(before, ended) {
    if (ended) Object.assign(this, { live: false, going: false });
    if (this.position >= before && !this.timer) this.position = this.head;
    this.show();
  }

  /** The server has paused, for whatever reason. */
  halted() {
    this.going = false;
    this.show();
  }

  seek(position) {
    this.#stop();
    if (this.going) this.send("pause");
    this.going = false;
    this.position = Math.min(Math.max(position, 0), this.head);
    this.show();
  }

  step() {
    if (!this.following) this.seek(this.position + 1);
    else if (this.live) {
      this.going = false;
      this.send("step");
    }
  }

  toggle() {
    if (this.timer) this.#stop();
    else if (this.going) {
      this.going = false;
      this.send("pause");
    } else if (this.live && this.following) this.#resume();
    else {
      if (this.following) this.position = 0;
      this.timer = setTimeout(() => this.#tick(), 0);
    }
    this.show();
  }

  #resume() {
    this.going = true;
    this.send("resume");
  }

  #tick() {
    this.timer = null;
    if (this.following) {
      if (this.live) this.#resume();
    } else {
      this.position += 1;
      if (!this.following || this.live) this.timer = setTimeout(() => this.#tick(), 1000 / this.speed);
    }
    this.show();
  }

  #stop() {
    clearTimeout(this.timer);
    this.timer = null;
  }

  #pace() {
    this.send("speed", { steps: this.speed });
  }

  show() {
    for (const lane of this.lanes()) lane.show(this.position);
    const head = this.head;
    this.scrubber.max = head;
    this.scrubber.value = this.position;
    this.scrubber.style.setProperty("--done", `${head ? (100 * this.position) / head : 0}%`);
    byId("clock").textContent = `${this.position} / ${head}`;
    const running = this.going || Boolean(this.timer);
    const button = byId("play");
    button.textContent = running ? "❚❚" : "▶";
    button.setAttribute("aria-label", running ? "Pause" : "Play");
    document.body.dataset.live = String(this.live);
  }
}
