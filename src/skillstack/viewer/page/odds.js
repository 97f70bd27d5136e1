// Why it decided so: the probabilities behind one decision, by the policy, by the grammar, and by both together.

import { fill, h } from "./dom.js";

const SOURCES = [["policy", "policy"], ["grammar", "grammar"], ["reshaped", "both"]];
const MOST_WORDS = 7;

const TITLES = { switch: "Call a skill, or act?", instruction: "Which skill to call", action: "Which action" };

export function legend() {
  return h("p", { class: "legend" }, ...SOURCES.map(([key, word]) => h("span", {}, h("i", { class: `swatch ${key}` }), word)));
}

/** The bars of a decision, those of the choice that it did not come to left out. */
export function showOdds(element, decision) {
  if (!decision) {
    fill(element, h("p", { class: "quiet", text: "Nothing decided yet." }));
    return;
  }
  const called = decision.utterance !== null;
  const chosen = { switch: called ? "call" : "act", instruction: decision.utterance, action: decision.action };
  const names = ["switch", called ? "instruction" : "action"].filter((name) => decision.odds?.[name]);
  fill(element, ...names.map((name) => group(name, decision.odds[name], chosen[name])));
}

function group(name, odds, chosen) {
  const weight = (word) => Math.max(...SOURCES.map(([key]) => odds[key]?.[word] ?? 0));
  const words = Object.keys(odds.policy).sort((a, b) => (b === chosen) - (a === chosen) || weight(b) - weight(a));
  const shown = words.slice(0, MOST_WORDS).filter((word) => word === chosen || weight(word) >= 0.005);
  const rest = words.length - shown.length;
  return h("div", { class: "odds", "data-odds": name },
    h("h4", { text: TITLES[name] }),
    ...shown.map((word) => line(word, odds, word === chosen)),
    rest ? h("p", { class: "quiet", text: others(rest, Math.max(...words.filter((word) => !shown.includes(word)).map(weight))) }) : null);
}

function others(count, likeliest) {
  const who = count === 1 ? "the other one" : `${count} others`;
  return likeliest < 0.005 ? `${who} hardly ever` : `${who} with at most ${percent(likeliest)}`;
}

function line(word, odds, isChosen) {
  const told = SOURCES.filter(([key]) => odds[key]).map(([key, name]) => `${name} ${percent(odds[key][word] ?? 0)}`);
  const bars = SOURCES.filter(([key]) => odds[key]).map(([key, name]) => {
    const share = odds[key][word] ?? 0;
    return h("span", { class: `track ${key}`, title: `${name} ${percent(share)}` },
      h("i", { style: { width: `${100 * share}%` } }));
  });
  const last = odds.reshaped ?? odds.policy;
  return h("div", { class: `bar-line${isChosen ? " chosen" : ""}`, "data-word": word, role: "img", "aria-label": `${word}: ${told.join(", ")}` },
    h("span", { class: "word", text: word }), h("span", { class: "bars" }, ...bars),
    h("span", { class: "value", text: percent(last[word] ?? 0) }));
}

export function percent(share) {
  const hundredths = 100 * share;
  return `${hundredths > 0 && hundredths < 9.95 ? hundredths.toFixed(1) : Math.round(hundredths)} %`;
}
