// The plan of an act: put together from patches, and asked where it is at which moment.

/** A run's JSON with a patch put in: the same as `apply` in feed.py. */
export function apply(known, patch) {
  const { keep, decisions: fresh, ...head } = patch;
  const run = Object.assign(known ?? { decisions: [] }, head);
  fresh.forEach((decision, number) => {
    const place = keep + number;
    if (place === run.decisions.length) run.decisions.push({ run: null });
    const old = run.decisions[place];
    const below = decision.run === null ? null : apply(old.run, decision.run);
    Object.assign(old, decision, { run: below });
  });
  return run;
}

/** The chain of [run, decision] that led to a moment's event, the root first; empty before the first. */
export function chainAt(root, event) {
  const chain = [];
  let left = event;
  let run = root;
  while (run) {
    let below = null;
    for (const decision of run.decisions) {
      const size = eventsOf(decision);
      if (left < size) {
        chain.push([run, decision]);
        below = decision.run;
        break;
      }
      left -= size;
    }
    run = below;
  }
  return event < 0 ? [] : chain;
}

/** How many actions and refused utterances there are in a decision. */
export function eventsOf(decision) {
  return decision.run === null ? 1 : decision.run.decisions.reduce((sum, below) => sum + eventsOf(below), 0);
}

export const SIGNS = { achieved: "✓", limit: "◷", "not executable": "✗", "cut off": "✂", "": "" };

export const GLYPHS = {
  "move forward": "↑", "move backward": "↓", "move left": "←", "move right": "→",
  "turn left": "↶", "turn right": "↷", "pick up": "⤒", "put down": "⤓",
};
