// What is selected, added up: one pass over the samples, one over the tree. No step of it recurses.
//
// Nodes stand callees first, and so a node and all below it are a row of numbers. With the weights of the
// nodes added up from the left, each node's place and width in a flame graph are two differences.

import {readCode} from './code_data.js';
import {firstFrom} from './search_times.js';
import {readStates} from './states.js';

// The tree of call chains, and what never changes of it.
const readTree = (columns) => {
  const behind = columns.get('node.parent'), frame = columns.get('node.frame'), count = frame.length;
  const parent = new Int32Array(count), first = new Int32Array(count), depth = new Int32Array(count);
  const frames = columns.get('frame.name').length, met = new Uint32Array(frames),
        isOuter = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    parent[i] = behind[i] === 0 ? -1 : i + behind[i];
    first[i] = i;
  }
  for (let i = 0; i < count; i++)
    if (parent[i] >= 0 && first[i] < first[parent[i]]) first[parent[i]] = first[i];
  // From a caller to its callees: `open` is the way down to the node. Recursive calls of a function count
  // once.
  const open = [];
  for (let i = count - 1; i >= 0; i--) {
    while (open.length > 0 && open[open.length - 1] !== parent[i]) met[frame[open.pop()]]--;
    depth[i] = open.length;
    isOuter[i] = met[frame[i]]++ === 0 ? 1 : 0;
    open.push(i);
  }
  return {count, parent, first, frame, depth, isOuter, root: count - 1};
};

// The answer of tacho why: `parts` are its findings and then its waits for work, with their samples, the ns
// that each of these is, and the event that has most of them. Null: the page has none.
const readAnswer = (why, columns, events) => {
  if (!why) return null;
  const sample = columns.get('why.sample'), time = columns.get('why.time');
  let end = 0;
  const read = (part, number) => {
    const from = end, weights = new Map();
    end += part.samples;
    for (let i = from; i < end; i++)
      weights.set(events[sample[i]], (weights.get(events[sample[i]]) || 0) + time[i]);
    const [[event] = [0]] = [...weights].sort((a, b) => b[1] - a[1]);
    return {...part, number, event, sample: sample.subarray(from, end), time: time.subarray(from, end)};
  };
  const parts = [...why.findings, ...why.idle].map(read), count = why.findings.length;
  return {...why, parts, findings: parts.slice(0, count), idle: parts.slice(count)};
};

// One capture, ready to be asked.
export const makeModel = ({head, columns, text, texts}) => {
  const tree = readTree(columns);
  const capture = head.capture;
  const names = columns.get('frame.name'), modules = columns.get('frame.module'),
        kinds = columns.get('frame.kind');
  const lines = columns.get('frame.line') || [];
  const frames = {
    count: names.length,
    name: (i) =>
        (i === tree.frame[tree.root] ? 'all' :
             i < names.length        ? text(names[i]) :
                                       `[${frames.module(i)}]`),
    module: (i) => text(i < names.length ? modules[i] : i - names.length),
    kind: (i) => (i < names.length ? String.fromCharCode(kinds[i]) : 'c'),
    line: (i) => text(lines[i] || 0),
    joined: (i) => names.length + modules[i]  // stands for all of its module
  };
  const time = columns.get('time'), count = time.length;
  const nodes = columns.get('stack.node');
  const samples = {
    count,
    time,
    cpu: columns.get('cpu'),
    thread: columns.get('thread'),
    event: columns.get('event'),
    node: columns.get('stack').map((stack) => nodes[stack]),
    weight: columns.get('weight'),
    cgroup: columns.get('cgroup')
  };
  const events =
      capture.events.map((event, number) => ({
                           number,
                           name: text(event.name),
                           unit: text(event.unit),
                           samples: event.samples,
                           hasStacks: event.stacks,
                           isOfCpu: event.cpu,
                           fields: event.fields.map((field, i) => ({
                                                      name: text(field.name),
                                                      unit: text(field.unit),
                                                      role: text(field.role),
                                                      isText: field.text,
                                                      values: columns.get(`field.${number}.${i}`),
                                                      missing: columns.get(`missing.${number}.${i}`)
                                                    }))
                         }));
  if (events.length === 0)
    events.push({number: 0, name: 'no event', unit: '', samples: 0, hasStacks: false, fields: []});
  // Which of its event's samples one is: payloads stand by that.
  const ordinal = new Uint32Array(count), next = new Uint32Array(events.length);
  for (let i = 0; i < count; i++) ordinal[i] = next[samples.event[i]]++;
  const threads = {
    count: columns.get('threads.pid').length,
    pid: columns.get('threads.pid'),
    tid: columns.get('threads.tid'),
    comm: (i) => text(columns.get('threads.comm')[i])
  };
  // Absolute times have more digits than a number of JavaScript.
  const start = BigInt(capture.start);
  const seconds = (offset) => {
    const all = start + BigInt(Math.round(offset)), part = all % 1000000000n;
    return `${all / 1000000000n}.${String(part).padStart(9, '0')}`;
  };
  const offsetOf = (shown) => {
    const form = /^(\d{1,12})(?:\.(\d{1,9}))?$/.exec(shown);
    if (!form) return null;
    return Number(BigInt(form[1]) * 1000000000n + BigInt((form[2] || '').padEnd(9, '0')) - start);
  };
  // What was before, by event name: sums of nodes.
  const base = head.base && {
    ...head.base,
    of: (name) => {
      const number = head.base.events.findIndex((event) => text(event.name) === name);
      return number < 0 ? null : {
        node: columns.get(`base.${number}.node`),
        weight: columns.get(`base.${number}.weight`),
        samples: columns.get(`base.${number}.samples`)
      };
    }
  };
  return {
    head,
    capture,
    states: readStates(head.state_names, columns),
    code: readCode(columns),
    answer: readAnswer(head.why, columns, samples.event),
    base,
    text,
    texts,
    tree,
    frames,
    samples,
    events,
    threads,
    ordinal,
    start,
    seconds,
    offsetOf,
    span: count > 0 ? time[count - 1] : 0
  };
};

// By node: whether the frame with that name, or one of its callers, is in the chain.
export const nodesWith = (model, test) => {
  const {count, parent, frame} = model.tree, isInside = new Uint8Array(count);
  const known = new Uint8Array(model.frames.count);
  for (let i = 0; i < known.length; i++) known[i] = test(i) ? 1 : 0;
  for (let i = count - 1; i >= 0; i--)
    isInside[i] = known[frame[i]] || (parent[i] >= 0 && isInside[parent[i]]) ? 1 : 0;
  return isInside;
};

// The same for one name, as it is asked for again with each step.
const lastFocus = {
  name: '',
  nodes: null
};
export const nodesOf = (model, name) => {
  if (lastFocus.name !== name || lastFocus.nodes === null)
    Object.assign(lastFocus, {name, nodes: nodesWith(model, (i) => model.frames.name(i) === name)});
  return lastFocus.nodes;
};

// By sample: its weight, of the event or the finding that is selected; -1: it is of another one. A finding
// has samples of several events.
const lastWeights = {
  key: '',
  weights: null
};
export const weightsOf = (model, {event, finding}) => {
  const key = `${event} ${finding}`, {samples, answer} = model;
  if (lastWeights.key === key) return lastWeights.weights;
  const weights = new Float64Array(samples.count).fill(-1);
  if (finding !== null) {
    const {sample, time} = answer.parts[finding];
    for (let i = 0; i < sample.length; i++) weights[sample[i]] = time[i];
  } else {
    for (let i = 0; i < weights.length; i++)
      if (samples.event[i] === event) weights[i] = samples.weight[i];
  }
  Object.assign(lastWeights, {key, weights});
  return weights;
};

const threadsOf = (model, state) => {
  if (state.pids.length === 0 && state.tids.length === 0) return null;
  const pids = new Set(state.pids), tids = new Set(state.tids),
        isWanted = new Uint8Array(model.threads.count);
  for (let i = 0; i < isWanted.length; i++)
    isWanted[i] = pids.has(model.threads.pid[i]) || tids.has(model.threads.tid[i]) ? 1 : 0;
  return isWanted;
};
const prefixSums = (own) => {
  const sums = new Float64Array(own.length + 1);
  for (let i = 0; i < own.length; i++) sums[i + 1] = sums[i] + own[i];
  return sums;
};

// Self and total of each function, and of the nodes as sums from the left.
export const addUp = (model, own) => {
  const {count, first, frame, isOuter} = model.tree, sums = prefixSums(own);
  const self = new Float64Array(model.frames.count), total = new Float64Array(model.frames.count);
  for (let i = 0; i < count; i++) {
    if (own[i] > 0) self[frame[i]] += own[i];
    if (isOuter[i]) total[frame[i]] += sums[i + 1] - sums[first[i]];
  }
  return {own, sums, self, total, all: sums[count]};
};

// What `state` (state.js) selects: {indexes, all, own, sums, self, total, before}
export const select = (model, state) => {
  const {samples, tree, ordinal} = model, {time, cpu, thread, event, node, cgroup} = samples;
  const weight = weightsOf(model, state);
  const from = state.from === null ? 0 : firstFrom(time, state.from);
  const to = state.to === null ? samples.count : firstFrom(time, state.to + 1);
  const isThread = threadsOf(model, state), cpus = state.cpus.length > 0 ? new Set(state.cpus) : null;
  const groups = state.groups.length > 0 && cgroup ? new Set(state.groups) : null;
  const isNode = state.focus === '' ? null : nodesOf(model, state.focus);
  const wanted = model.events[state.event];
  const field =
      state.field && state.low !== null ? wanted.fields.find((one) => one.name === state.field) : null;
  const isOffset = state.field === '' && state.low !== null;
  const own = new Float64Array(tree.count), indexes = new Uint32Array(Math.max(to - from, 0));
  let found = 0, all = 0;
  for (let i = from; i < to; i++) {
    if (weight[i] < 0) continue;
    if (isThread !== null && !isThread[thread[i]]) continue;
    if (cpus !== null && !cpus.has(cpu[i] - 1)) continue;
    if (groups !== null && !groups.has(model.text(cgroup[i]))) continue;
    if (isNode !== null && !isNode[node[i]]) continue;
    if (field) {
      const at = ordinal[i], value = field.values[at];
      if (event[i] !== state.event || (field.missing && field.missing[at]) || value < state.low ||
          value > state.high)
        continue;
    } else if (isOffset) {
      const value = time[i] % 1e9;
      if (value < state.low || value > state.high) continue;
    }
    indexes[found++] = i;
    const counts = state.by === 'samples' ? 1 : weight[i];
    own[node[i]] += counts;
    all += counts;
  }
  const selection = {indexes: indexes.subarray(0, found), ...addUp(model, own), before: null};
  const before = model.base ? model.base.of(wanted.name) : null;
  if (before) {
    const was = new Float64Array(tree.count),
          weights = state.by === 'samples' ? before.samples : before.weight;
    for (let i = 0; i < before.node.length; i++)
      if (isNode === null || isNode[before.node[i]]) was[before.node[i]] += weights[i];
    selection.before = addUp(model, was);
  }
  return selection;
};

// The stacks of a selection as lines "thread;root;...;leaf WEIGHT", as tacho folded prints them: it knows
// names alone, and
// ';' and the blanks of a thread's name are no part of them.
export const folded = (model, selection) => {
  const {tree, frames} = model, weights = new Map(), known = [];
  const name = (frame) => {
    if (known[frame] === undefined) {
      const text = frames.name(frame).replaceAll(';', ':');
      known[frame] = frames.kind(frame) === 't' ? text.replaceAll(' ', '_') : text;
    }
    return known[frame];
  };
  for (let i = 0; i < tree.count; i++) {
    if (!(selection.own[i] > 0) || i === tree.root) continue;
    const names = [];
    for (let at = i; at !== tree.root; at = tree.parent[at]) names.push(name(tree.frame[at]));
    const stack = names.reverse().join(';');
    weights.set(stack, (weights.get(stack) || 0) + selection.own[i]);
  }
  return [...weights].map(([stack, weight]) => `${stack} ${weight}`).sort().join('\n');
};
