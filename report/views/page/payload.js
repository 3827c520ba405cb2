// What a sample says: its payload, its thread, its CPU.
import {amount} from '../../browser/words.js';

export const makePayload = (model) => {
  const {samples, threads, tree, frames, ordinal} = model;
  // [[name, value]]
  const fields = (i, number = amount) => {
    const at = ordinal[i], shown = [];
    for (const field of model.events[samples.event[i]].fields) {
      if (field.missing && field.missing[at]) continue;
      shown.push([field.name, field.isText ? model.text(field.values[at]) : number(field.values[at], field.unit)]);
    }
    return shown;
  };
  const comm = (i) => {
    let at = samples.node[i];
    while (tree.parent[at] !== tree.root && tree.parent[at] >= 0) at = tree.parent[at];
    return frames.name(tree.frame[at]);
  };
  const thread = (i) => {
    const pid = threads.pid[samples.thread[i]], tid = threads.tid[samples.thread[i]];
    return `${comm(i)} ${pid === tid ? tid : `${pid}/${tid}`}`;
  };
  // The frames of its call chain, leaf first.
  const chain = (i, most) => {
    const found = [];
    for (let at = samples.node[i]; at !== tree.root && found.length < most; at = tree.parent[at]) found.push(tree.frame[at]);
    return found;
  };
  // The names of its innermost frames, leaf first: if the program has some, those in which it called the kernel.
  const nearest = (i, most) => {
    const all = chain(i, Infinity), own = all.filter((frame) => !'kt'.includes(frames.kind(frame)));
    return (own.length > 0 ? own : all).slice(0, most).map(frames.name);
  };
  return {
    fields,
    thread,
    chain,
    nearest,
    cpu: (i) => (samples.cpu[i] === 0 ? '' : `CPU ${samples.cpu[i] - 1}`),
    words: (i) => fields(i).map(([name, value]) => `${name}=${value}`).join(' ') || frames.name(tree.frame[samples.node[i]])
  };
};
