// The page: it listens to the server, keeps the lanes, and wires the controls together.

import { Command } from "./command.js";
import { CurvesTab } from "./curves.js";
import { byId, fill, h, options } from "./dom.js";
import { KEYS, makePad } from "./drive.js";
import { GalleryTab } from "./gallery.js";
import { GrammarTab } from "./grammar.js";
import { Lane } from "./lane.js";
import { Playback } from "./playback.js";
import { Connection } from "./socket.js";

const MOST_BLOCKS = 8;
const TABS = ["watch", "grammar", "learning", "gallery"];

let lanes = [];
let agents = [];
let connection = null;
let driving = false;
let slow = false; // whether laying out a game takes a while: in Minecraft a player must join
let afterSetup = null; // what to do once the game is laid out
let wishes = new URLSearchParams(location.hash.slice(1)); // what the command line asked the page to show first

const send = (type, content) => connection?.send(type, content);
const playback = new Playback(() => lanes, send);
const command = new Command(() => before() && !isLaidOut() && setUp()); // what was played stays until one says go
const tabs = { grammar: new GrammarTab(send), learning: new CurvesTab(send), gallery: new GalleryTab(send) };
const pad = makePad((action) => drive(action));

// The game

const before = () => document.body.dataset.before === "true"; // nothing has been played yet

function setUp(then = null) {
  const rival = byId("rival").value;
  afterSetup = then;
  command.say(slow ? "A player joins Minecraft and builds the room ..." : "", "note");
  send("setup", {
    instruction: command.text,
    agents: [byId("agent").value, ...(rival ? [rival] : [])],
    room: byId("room").value,
    blocks: byId("blocks").value ? Number(byId("blocks").value) : null,
    seed: Math.max(0, Math.floor(Number(byId("seed").value) || 0)),
    greedy: byId("greedy").checked,
  });
}

function makeLanes(players, scene) {
  lanes = players.map((player) => new Lane(player, scene, (agent, blocks) => send("arrange", {
    agent, blocks: blocks.map(({ item, x, z, y }) => ({ item, x, z, y })),
  })));
  fill(byId("lanes"), ...lanes.map((lane) => lane.element));
  byId("lanes").dataset.count = lanes.length;
  byId("lanes").dataset.wide = scene.rooms.length > 1 ? "two" : "one";
}

function showGame(event) {
  if (slow) command.say("");
  const same = lanes.length === event.lanes.length && JSON.stringify(lanes[0].scene) === JSON.stringify(event.scene);
  if (!same) makeLanes(event.lanes.map((lane) => lane.player), event.scene);
  event.lanes.forEach((look, number) => lanes[number].showPreview(look, look.player));
  command.know(command.words.skills, command.words.items, event.scene.colours);
  setDriving(false);
  setMovable(true);
  document.body.dataset.game = game(event.instruction, event.seed);
  byId("then").hidden = true;
  byId("go").textContent = "Go";
  playback.reset();
  const next = afterSetup;
  afterSetup = null;
  next?.();
}

const game = (instruction, seed) => `${instruction}, seed ${seed}`;
const isLaidOut = () => document.body.dataset.game === game(command.text, byId("seed").value);

function setMovable(movable) {
  document.body.dataset.before = String(movable);
  for (const lane of lanes) lane.map.movable = movable;
  playback.show();
}

function beginAct(event) {
  if (event.lane === 0) {
    const longest = Math.max(...lanes.map((lane) => lane.length));
    if (!event.fresh) lanes.forEach((lane) => lane.pad(longest));
    setMovable(false);
    setDriving(event.player === "you");
  }
  lanes[event.lane].beginAct(event);
  lanes[event.lane].addMoment(event);
  playback.begun(!driving);
  byId("go").textContent = driving ? "Change the task" : "Interrupt";
  byId("then").hidden = true;
}

function addMoment(event) {
  const before = playback.head;
  lanes[event.lane].addMoment(event);
  const ended = lanes.every((lane) => lane.acts.at(-1)?.ended);
  playback.grown(before, ended);
  if (!ended) return;
  setDriving(false);
  byId("go").textContent = "Go";
  byId("then").hidden = false;
}

function loadReel(reel) {
  select("watch");
  makeLanes([reel.player || "recorded"], reel.scene);
  lanes[0].loadReel(reel);
  setDriving(false);
  byId("then").hidden = true;
  playback.reset();
  setMovable(false);
  if (connection) command.say(`A recorded game of “${reel.plan.root.instruction}”. Go starts a new one.`, "note");
  playback.toggle();
}

// Driving

function setDriving(on) {
  driving = on;
  document.body.dataset.driving = String(on);
  byId("drive").setAttribute("aria-pressed", String(on));
  byId("drive").textContent = on ? "Hand back to the agent" : "Drive it yourself";
  if (on && lanes.length) lanes[0].element.querySelector(".sight-box").append(pad);
  else pad.remove();
}

function drive(action) {
  if (!playback.following) playback.seek(playback.head);
  send("act", { action });
}

function takeOver() {
  if (driving) send("instruct", { instruction: command.text, drive: false });
  else if (playback.live) send("instruct", { instruction: command.text, drive: true });
  else setUp(() => send("start", { drive: true }));
}

// Controls

byId("command").addEventListener("submit", (event) => {
  event.preventDefault();
  command.close();
  command.say("");
  if (playback.live) send("instruct", { instruction: command.text, drive: driving });
  else if (before() && isLaidOut()) start();
  else setUp(start);
});

function start() {
  send("start", {});
}

byId("then").addEventListener("click", () => send("instruct", { instruction: command.text, drive: false }));
byId("drive").addEventListener("click", takeOver);
for (const id of ["agent", "rival", "room", "blocks", "seed", "greedy"]) byId(id).addEventListener("change", () => setUp());
byId("agent").addEventListener("change", know);
byId("dice").addEventListener("click", () => {
  byId("seed").value = Math.floor(Math.random() * 1000000);
  setUp();
});
byId("save").addEventListener("click", () => keep((act) => send("save", { act })));
for (const button of document.querySelectorAll("[data-export]")) {
  button.addEventListener("click", () => keep((act) => {
    toast(`Making ${button.textContent} ...`);
    send("export", { act, kind: button.dataset.export });
  }));
}

function keep(what) {
  byId("keep").open = false;
  const act = lanes[0]?.act;
  if (act) what(act.act);
  else toast("There is nothing to keep yet: let the agent play first.");
}

function download({ name, mime, data }) {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const address = URL.createObjectURL(new Blob([bytes], { type: mime }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
  toast(`${name} is ready.`);
}

let toastTimer = null;
function toast(text) {
  byId("toast").textContent = text;
  byId("toast").hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { byId("toast").hidden = true; }, 4000);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("watch").hidden) return;
  if (event.key === "Escape") byId("keep").open = false;
  if (event.target.closest("input, select, textarea, summary, [role=tab]")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (driving && KEYS[key]) drive(KEYS[key]);
  else if (key === " " && !event.target.closest("button")) lanes[0]?.length ? playback.toggle() : start();
  else if (key === "ArrowLeft") playback.seek(playback.position - 1);
  else if (key === "ArrowRight") playback.step();
  else if (key === "Home") playback.seek(0);
  else if (key === "End") playback.seek(playback.head);
  else if (key === "/") byId("instruction").focus();
  else return;
  event.preventDefault();
});

byId("play").addEventListener("click", () => {
  if (!lanes[0]?.length && connection) start();
});

// Tabs and looks

function select(name) {
  for (const tab of TABS) {
    const button = byId(`tab-${tab}`);
    button.setAttribute("aria-selected", String(tab === name));
    button.tabIndex = tab === name ? 0 : -1;
    byId(tab).hidden = tab !== name;
    if (tab !== name) tabs[tab]?.close?.();
  }
  tabs[name]?.open();
}

for (const name of TABS) byId(`tab-${name}`).addEventListener("click", () => select(name));
document.querySelector(".tabs").addEventListener("keydown", (event) => {
  const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!move) return;
  const here = TABS.findIndex((name) => byId(`tab-${name}`) === document.activeElement);
  const next = TABS[(here + move + TABS.length) % TABS.length];
  select(next);
  byId(`tab-${next}`).focus();
});

byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("skillstack-theme", root.dataset.theme); } catch { /* private windows forget */ }
});
try {
  const theme = localStorage.getItem("skillstack-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* files and private windows have no memory */ }

// The server

function know() {
  const agent = agents.find((one) => one.name === byId("agent").value);
  if (agent) command.know(agent.skills, agent.items);
}

function hello(event) {
  agents = event.agents;
  slow = event.world === "minecraft";
  byId("place").textContent = slow ? "in Minecraft" : "";
  const names = agents.map((agent) => agent.name);
  options(byId("agent"), names, names.includes(byId("agent").value) ? byId("agent").value : names[0]);
  const rival = byId("rival").value;
  fill(byId("rival"), h("option", { value: "", text: "nobody" }), ...names.map((name) => h("option", { value: name, text: name })));
  byId("rival").value = wishes.has("compare") ? names[Number(wishes.get("compare"))] : rival;
  for (const agent of agents) byId("agent").querySelector(`option[value="${CSS.escape(agent.name)}"]`).title = agent.about;
  tabs.grammar.know(agents, names[0]);
  know();
  if (wishes.has("play")) byId("instruction").value = wishes.get("play");
  if (wishes.has("seed")) byId("seed").value = wishes.get("seed");
  if (wishes.has("room")) byId("room").value = wishes.get("room");
  setUp(wishes.has("play") ? () => send("start", { drive: true }) : null);
  wishes = new URLSearchParams();
}

function fail({ about, message }) {
  const tab = { grammar: "grammar", curves: "learning" }[about];
  if (tab) return tabs[tab].fail(message);
  command.say(message);
  if (about === "setup") afterSetup = null;
  if (about === "arrange") playback.show();
  if (byId("watch").hidden) toast(message);
}

const answers = {
  hello, game: showGame, act: beginAct, moment: addMoment, reel: loadReel, file: download, error: fail,
  grammar: (event) => tabs.grammar.show(event),
  runs: (event) => tabs.learning.know(event.runs),
  curves: (event) => tabs.learning.show(event),
  gallery: (event) => tabs.gallery.show(event.games),
  saved: (event) => toast(`Kept in the gallery as ${event.name}.`),
};

function linked(open, reason) {
  byId("link").textContent = open ? "" : reason || "Not connected; trying again ...";
  document.body.dataset.linked = String(open);
  if (!open) playback.halted();
}

function begin() {
  for (let count = 1; count <= MOST_BLOCKS; count += 1) byId("blocks").append(h("option", { value: count, text: count }));
  const recorded = byId("reel");
  if (recorded) {
    document.body.dataset.standalone = "true";
    loadReel({ act: 0, ...JSON.parse(recorded.textContent) });
  } else connection = new Connection((event) => answers[event.type]?.(event), linked);
}

begin();
