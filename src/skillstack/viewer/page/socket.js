// The connection to the server: JSON both ways, and a new one whenever it is lost.

export class Connection {
  constructor(onEvent, onState) {
    this.onEvent = onEvent;
    this.onState = onState;
    this.wait = 500;
    this.#open();
  }

  #open() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.socket = new WebSocket(`${scheme}://${location.host}/socket`);
    this.socket.addEventListener("open", () => {
      this.wait = 500;
      this.onState(true);
    });
    this.socket.addEventListener("message", (message) => this.onEvent(JSON.parse(message.data)));
    this.socket.addEventListener("close", (event) => {
      this.onState(false, event.reason);
      setTimeout(() => this.#open(), this.wait);
      this.wait = Math.min(this.wait * 2, 8000);
    });
  }

  send(type, content = {}) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ type, ...content }));
  }
}
