// What the samples in a box of the heat map have more often than the others: threads, processors, functions and values of
// fields, ranked by G2, the same numbers as tacho heatmap --box prints.
import {addUp} from './model.js';

const LEAST_G2 = 10.83;  // chance exceeds it once in a thousand
const FEWEST = 2;        // samples
const MOST_VALUES = 4096, FEW_VALUES = 64;  // of a field

// The log-likelihood ratio of the 2x2 table of a part and the whole: [inside, outside] each.
const ratio = ([inside, outside], [allInside, allOutside]) => {
  const all = allInside + allOutside, having = inside + outside;
  const term = (seen, row, column) => (seen > 0 ? seen * Math.log(seen * all / (row * column)) : 0);
  return 2 * (term(inside, having, allInside) + term(outside, having, allOutside) +
              term(allInside - inside, all - having, allInside) + term(allOutside - outside, all - having, allOutside));
};

// `inside`: the samples of the box, `around`: with all others; `shown`: the field of the map. [{g2, inside, outside, kind,
// name, value, others}], the most significant first.
export const boxFacts = (model, inside, around, shown) => {
  const {samples, threads, frames, tree, ordinal} = model, found = [];
  const isInside = new Uint8Array(samples.count);
  for (const i of inside) isInside[i] = 1;
  const whole = [inside.length, around.length - inside.length];
  const add = (tally, kind, name, value, others = 0) => {
    const [here, there] = tally;
    if (here < FEWEST || here * whole[1] <= there * whole[0]) return;
    const g2 = ratio(tally, whole);
    if (g2 >= LEAST_G2) found.push({g2, inside: here, outside: there, kind, name, value, others});
  };
  // Tallies by key; null: there are too many keys.
  const tallies = (keyOf) => {
    const counts = new Map();
    for (const i of around) {
      const key = keyOf(i);
      if (key === undefined) continue;
      if (!counts.has(key)) {
        if (counts.size === MOST_VALUES) return null;
        counts.set(key, [0, 0]);
      }
      counts.get(key)[isInside[i] === 1 ? 0 : 1]++;
    }
    return counts;
  };
  const root = (i) => {
    let at = samples.node[i];
    while (tree.parent[at] !== tree.root && tree.parent[at] >= 0) at = tree.parent[at];
    return tree.frame[at];
  };
  const hasThreads = frames.count > 1;
  tallies((i) => samples.thread[i])?.forEach((tally, thread) =>
      add(tally, 'thread', threads.comm(thread), `${threads.pid[thread]}/${threads.tid[thread]}`));
  tallies((i) => threads.pid[samples.thread[i]])?.forEach((tally, pid) => add(tally, 'pid', 'pid', String(pid)));
  tallies((i) => samples.cpu[i] - 1)?.forEach((tally, cpu) => { if (cpu >= 0) add(tally, 'cpu', 'cpu', String(cpu)); });
  if (hasThreads)
    tallies(root)?.forEach((tally, frame) => { if (frames.kind(frame) === 't') add(tally, 'comm', 'comm', frames.name(frame)); });
  // Payloads are of events; a finding of tacho why has samples of several.
  const events = new Set(around.map((i) => samples.event[i]));
  for (const number of events)
    for (const field of model.events[number].fields) {
      if (field === shown) continue;
      const counts = tallies((i) => (samples.event[i] !== number || (field.missing && field.missing[ordinal[i]]) ? undefined : field.values[ordinal[i]]));
      if (counts !== null && (field.isText || field.unit === '' || counts.size <= FEW_VALUES))
        counts.forEach((tally, value) => add(tally, 'field', field.name, field.isText ? model.text(value) : value));
    }
  // Of functions with equal counts only the deepest is listed: the others are mostly its callers.
  const own = [new Float64Array(tree.count), new Float64Array(tree.count)];
  for (const i of around) own[isInside[i] === 1 ? 0 : 1][samples.node[i]]++;
  const sums = own.map((one) => addUp(model, one)), depths = new Int32Array(frames.count).fill(-1);
  for (let node = 0; node < tree.count; node++) {
    const frame = tree.frame[node];
    if (tree.depth[node] > depths[frame] && sums[0].sums[node + 1] - sums[0].sums[tree.first[node]] > 0) depths[frame] = tree.depth[node];
  }
  const equal = new Map();
  for (let frame = 0; frame < frames.count; frame++) {
    if (depths[frame] < 0 || frame === tree.frame[tree.root] || frames.kind(frame) === 't') continue;
    const key = `${sums[0].total[frame]} ${sums[1].total[frame]}`;
    if (!equal.has(key)) equal.set(key, []);
    equal.get(key).push(frame);
  }
  for (const list of equal.values()) {
    const [deepest] = list.sort((a, b) => depths[b] - depths[a] || a - b);
    add([sums[0].total[deepest], sums[1].total[deepest]], 'function', frames.name(deepest), frames.module(deepest), list.length - 1);
  }
  return found.sort((a, b) => b.g2 - a.g2);
};
