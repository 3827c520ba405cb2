// The trees of a picture of `tacho flamegraph`: read from its elements and its packed data, and changed as the user asks.
import {callersTree, joinFrames, outermost} from '../../browser/changed_tree.js';
import {openData} from '../../browser/packed_data.js';

const ROW = 17;

// Sums of a frame alone and with its callees: of all, and in a difference of before and after.
const SUMS = [['own', 'totals'], ['ownBefore', 'before'], ['ownAfter', 'after']];
// Frames by number; a frame is after its caller. `self` is the function's own weight; `own` is more than that if the file
// does not have all callees.
class FlameTree {
  root = 0;
  name = [];
  // All others have room for more frames.
  up = new Int32Array(64);
  first = new Int32Array(64);  // callee
  last = new Int32Array(64);
  next = new Int32Array(64);  // callee of the same caller
  self = new Float64Array(64);
  noise = new Float64Array(64);
  constructor() {
    for (const [own, total] of SUMS) this[own] = new Float64Array(64), this[total] = new Float64Array(64);
  }
  makeRoom() {
    for (const key of ['up', 'first', 'last', 'next', 'self', 'noise', ...SUMS.flat()]) {
      const had = this[key];
      this[key] = new had.constructor(2 * had.length);
      this[key].set(had);
    }
  }
  parent(i) {
    return this.up[i];
  }
  frame(i) {
    return this.name[i];
  }
  total(i, side = 0) {
    return this[SUMS[side][1]][i];
  }
  // A frame as text, and back: the root, if there is none.
  placeOf(i) {
    return String(i);
  }
  nodeAt(place) {
    return Number(place) in this.name ? Number(place) : 0;
  }
  missing(i) {
    return this.own[i] - this.self[i];
  }
  callees(i) {
    const found = [];
    for (let callee = this.first[i]; callee >= 0; callee = this.next[callee]) found.push(callee);
    return found;
  }
  addNode(caller, name) {
    const i = this.name.length;
    if (i === this.up.length) this.makeRoom();
    this.name.push(name);
    this.up[i] = caller;
    this.first[i] = this.last[i] = this.next[i] = -1;
    if (caller < 0) return i;
    if (this.first[caller] < 0)
      this.first[caller] = i;
    else
      this.next[this.last[caller]] = i;
    this.last[caller] = i;
    return i;
  }
  // `weights`: {self, noise, totals, before, after}
  addFrame(caller, name, weights) {
    const i = this.addNode(caller, name);
    this.self[i] = weights.self;
    this.noise[i] = weights.noise;
    for (const [own, total] of SUMS) {
      this[own][i] = this[total][i] = weights[total];
      if (caller >= 0) this[own][caller] -= weights[total];
    }
    return i;
  }
  addUp() {
    for (const [own, total] of SUMS) {
      for (let i = this.name.length - 1; i >= 0; i--) {
        this[total][i] += this[own][i];
        if (this.up[i] >= 0) this[total][this.up[i]] += this[total][i];
      }
    }
    return this;
  }
}

const number = (rect, name) => Number(rect.getAttribute(name) || 0);

// `names`: by number, see flamegraph.js.
export const readTree = (rects, names) => {
  const tree = new FlameTree(), path = [];
  const rootY = rects.length > 0 ? number(rects[0], 'y') : 0;
  for (const rect of rects) {
    const depth = Math.round(Math.abs(number(rect, 'y') - rootY) / ROW);
    path[depth] = tree.addFrame(depth === 0 ? -1 : path[depth - 1], names[number(rect, 'n')], {
      self: number(rect, 's'), noise: number(rect, 'e'), totals: number(rect, 'w'), before: number(rect, 'b'),
      after: number(rect, 'a')
    });
  }
  return tree;
};

// Adds the frames that are too thin to be drawn to the trees and to the names; `mark(name)`: this name is marked.
export const readThin = async (trees, names, mark) => {
  const {columns, text} = await openData();
  const kinds = columns.get('name.kind'), ofModules = columns.get('name.module'), marks = columns.get('name.marked');
  for (let i = 0; i < kinds.length; i++) {
    const id = names.length;
    names.push({id, kind: String.fromCharCode(kinds[i]), module: text(ofModules[i]), text: text(i), line: ''});
    if (marks[i]) mark(names[id]);
  }
  trees.forEach((tree, which) => {
    const column = (name) => columns.get(`${which}.${name}`), at = (values, i) => (values.length > 0 ? values[i] : 0);
    const steps = column('caller'), ofNames = column('name'), totals = column('total'), selves = column('self'),
          befores = column('before'), afters = column('after'), noises = column('noise');
    let caller = 0;
    for (let i = 0; i < steps.length; i++) {
      caller += steps[i];
      tree.addFrame(caller, names[ofNames[i]], {
        self: selves[i], noise: at(noises, i), totals: totals[i], before: at(befores, i), after: at(afters, i)
      });
    }
  });
};

// The tree with only the calls of one function (`focus`), without functions (`hide`), or with recursion or `modules` joined;
// `how` = {focus, isTop, hide, recursion, modules}, see joinFrames().
export const changedTree = (base, how, names) => {
  if (how.focus === '' && how.hide.length === 0 && how.modules.length === 0 && !how.recursion) return base;
  const joined = how.modules.map((module, i) => ({id: names.length + i, kind: 'c', module, text: `[${module}]`, line: ''}));
  const known = new Map([...base.name, ...joined].map((name) => [name.id, name]));
  const {to, up, frame} = joinFrames(
      {count: base.name.length, root: 0, parent: (i) => base.up[i], frame: (i) => base.name[i].id}, {
        name: (id) => known.get(id).text, module: (id) => known.get(id).module,
        joined: (id) => names.length + how.modules.indexOf(known.get(id).module)
      }, how);
  const tree = new FlameTree();
  up.forEach((caller, i) => tree.addNode(caller, known.get(frame[i])));
  to.forEach((now, i) => {
    if (now < 0) return;
    tree.self[now] += base.self[i];
    if (i === 0 || to[base.up[i]] !== now) tree.noise[now] += base.noise[i];
    for (const [own] of SUMS) tree[own][now] += base[own][i];
  });
  return tree.addUp();
};

// The tree of the callers of a function (`around`), or of all functions in which samples were taken, with these as the first
// frames. Its frames have no own weight.
export const callersOf = (base, around) => {
  const known = new Map(base.name.map((name) => [name.id, name])), count = base.name.length, isOfAll = around === '';
  const callees = {count, root: 0, parent: (i) => base.up[i], frame: (i) => base.name[i].id};
  const starts = isOfAll ? base.name.map((_, i) => i).filter((i) => i > 0 && base.self[i] > 0) :
                           outermost(callees, (id) => known.get(id).text === around);
  const weights = SUMS.map(([own, total]) => (i) => base[isOfAll ? (own === 'own' ? 'self' : own) : total][i]);
  const tree = callersTree(callees, {starts, weights, top: isOfAll ? undefined : base.name[starts[0] || 0].id});
  return {
    ...tree,
    frame: (i) => known.get(tree.frame(i)),
    placeOf: (i) => (i === 0 ? '0' : tree.placeOf(i).join('+')),
    nodeAt: (place) => {
      const [start, steps = 0] = place.split('+').map(Number);
      return start in base.name ? tree.nodeAt(start, steps) : 0;
    }
  };
};

// The total of the matches below `top`; a match within a match is counted once. `hidden`: how many are not drawn.
export const matched = (tree, isMatch, top, isDrawn) => {
  const {up, totals} = tree, frames = tree.name.length, isCounted = new Uint8Array(frames);
  let sum = 0, count = 0, hidden = 0;
  for (let i = top; i < frames; i++) {
    if (i !== top && (up[i] < top || !(isCounted[up[i]] & 2))) continue;
    isCounted[i] = 2 | (i !== top ? isCounted[up[i]] & 1 : 0);
    if (!isMatch(i)) continue;
    count++;
    if (!isDrawn(i)) hidden++;
    if (!(isCounted[i] & 1)) sum += totals[i];
    isCounted[i] |= 1;
  }
  return {sum, count, hidden};
};
