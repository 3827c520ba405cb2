// The trees that flame graphs of the selection show: the recorded one, one with frames hidden or joined, and those of
// callers. Each is what browser/flame_graph.js lays out, with frame(i), self(i) and, of a comparison, change(i). A place in
// it that stays when the selection or the tree changes is [recorded node, steps]: placeOf(i), nodeAt(node, steps).
import {callersTree, joinFrames, outermost} from '../../browser/changed_tree.js';

const calleesFrom = (up) => {
  const first = new Int32Array(up.length).fill(-1), next = new Int32Array(up.length).fill(-1);
  for (let i = 1; i < up.length; i++) [next[i], first[up[i]]] = [first[up[i]], i];
  return (i) => {
    const found = [];
    for (let callee = first[i]; callee >= 0; callee = next[callee]) found.push(callee);
    return found;
  };
};
// Answers with what it made last as long as the key is the same.
const remembering = (make) => {
  let last = {key: null, made: null};
  return (key, ...given) => {
    if (last.key !== key) last = {key, made: make(...given)};
    return last.made;
  };
};

export const makeStacks = ({tree, frames}) => {
  // `sides`: sums of addUp(), the shown one first.
  const recorded = (sides) => {
    const total = (i, side = 0) => sides[side].sums[i + 1] - sides[side].sums[tree.first[i]];
    return {
      count: tree.count,
      root: tree.root,
      parent: (i) => tree.parent[i],
      frame: (i) => tree.frame[i],
      total,
      self: (i, side = 0) => sides[side].own[i],
      callees: (i) => {
        const found = [];
        for (let child = i - 1; child >= tree.first[i]; child = tree.first[child] - 1) found.push(child);
        return found.reverse();
      },
      placeOf: (i) => [i, 0],
      nodeAt: (node) => node
    };
  };
  const shapeOf = (base, how) => {
    const {to, up, frame} = joinFrames(base, frames, how), of = new Int32Array(up.length).fill(-1);
    for (let i = 0; i < to.length; i++)
      if (to[i] >= 0) of[to[i]] = i;
    of[0] = base.root;
    return {to, up, frame, of, callees: calleesFrom(up)};
  };
  const joinedShape = remembering(shapeOf), focusedShape = remembering(shapeOf);
  // `count`: of sides.
  const changed = (base, {to, up, frame, of, callees}, count) => {
    const sums = Array.from({length: count}, (_, side) => {
      const own = new Float64Array(up.length);
      for (let i = 0; i < to.length; i++)
        if (to[i] >= 0) own[to[i]] += base.self(i, side);
      const totals = own.slice();
      for (let i = up.length - 1; i > 0; i--) totals[up[i]] += totals[i];
      return {own, totals};
    });
    return {
      count: up.length,
      root: 0,
      parent: (i) => up[i],
      frame: (i) => frame[i],
      total: (i, side = 0) => sums[side].totals[i],
      self: (i, side = 0) => sums[side].own[i],
      callees,
      placeOf: (i) => [of[i], 0],
      nodeAt: (node) => Math.max(to[node], 0)
    };
  };
  const above = (base, count, starts, weight, top) => {
    const weights = Array.from({length: count}, (_, side) => (i) => weight(i, side));
    const callers = callersTree(base, {starts, weights, top});
    return {
      ...callers,
      placeOf: (i) => {
        const [start, steps] = callers.placeOf(i);
        return steps > 0 ? [base.placeOf(start)[0], steps] : [tree.root, 0];
      },
      nodeAt: (node, steps) => callers.nodeAt(base.nodeAt(node), steps)
    };
  };
  const starting = (base, count) => {
    const found = [];
    for (let i = 0; i < base.count; i++) {
      for (let side = 0; side < count; side++) {
        if (i === base.root || !(base.self(i, side) > 0)) continue;
        found.push(i);
        break;
      }
    }
    return found;
  };

  // What `state` (state.js) asks for: {graph}, or with a function to look around at {callers, callees}.
  return (state, sides) => {
    const {hide, modules, recursion} = state, count = sides.length, how = JSON.stringify([hide, modules, recursion]);
    let base = recorded(sides);
    if (hide.length + modules.length > 0 || recursion)
      base = changed(base, joinedShape(how, base, {hide, modules, recursion}), count);
    if (state.around === '')
      return {graph: state.graph === 'callers' ? above(base, count, starting(base, count), base.self) : base};
    const starts = outermost(base, (f) => frames.name(f) === state.around);
    const top = starts.length > 0 ? base.frame(starts[0]) : base.frame(base.root);
    const below = focusedShape(`${how} ${state.around}`, base, {focus: state.around, isTop: true});
    return {callers: above(base, count, starts, base.total, top), callees: changed(base, below, count)};
  };
};
