// Other views of a tree of frames, of pictures and pages alike: without some frames or with some joined, and from the
// leaves up.
//
// A tree is {count, root, parent(i), frame(i)}: callers stand before their callees, or all behind them. `frames` are the
// functions by number: {name(f), module(f), joined(f)}, the last of them the frame that stands for a whole module.

// The frames with only the calls of one function (`focus`), without functions (`hide`), or with direct recursion
// (`recursion`) or functions of a module that call each other (`modules`) as one. `isTop`: the focus takes the place of the
// root. Returns `to`: by number the new one, -1: it has none; and by new number `up`, its caller, and `frame`. Callers are
// before their callees, and the root is 0.
export const joinFrames = (tree, frames, {focus = '', isTop = false, hide = [], modules = [], recursion = false}) => {
  const {count, root} = tree, to = new Int32Array(count), up = [-1], frame = [tree.frame(root)], callees = new Map();
  const hidden = new Set(hide), joined = new Set(modules), looks = new Map();
  const lookOf = (f) => {
    if (!looks.has(f)) {
      const name = frames.name(f), module = frames.module(f), isJoined = module !== '' && joined.has(module);
      looks.set(f, {isFocus: name === focus, isHidden: hidden.has(name), isJoined, shown: isJoined ? frames.joined(f) : f});
    }
    return looks.get(f);
  };
  const calleeOf = (caller, f) => {
    const key = caller * 2 ** 24 + f;
    if (!callees.has(key)) {
      callees.set(key, up.length);
      up.push(caller);
      frame.push(f);
    }
    return callees.get(key);
  };
  to[root] = focus === '' ? 0 : -1;
  for (let place = 1; place < count; place++) {
    const i = root === 0 ? place : root - place, caller = to[tree.parent(i)];
    const {isFocus, isHidden, isJoined, shown} = lookOf(tree.frame(i));
    if (caller < 0 && (!isFocus || isTop)) {
      to[i] = isFocus ? 0 : -1;
      if (isFocus) frame[0] = shown;
      continue;
    }
    to[i] = Math.max(caller, 0);
    const isSame = (recursion || isJoined) && to[i] !== 0 && frame[to[i]] === shown;
    if (!isHidden && !isSame) to[i] = calleeOf(to[i], shown);
  }
  return {to, up, frame};
};

// A tree whose frames have their callers below them. `starts`: the frames of `tree` it begins with; `weights`: of each
// side a function of a frame's weight; `top`: the frame of the root, which is that of the starts; without it the root is that
// of `tree`, above the starts. Frames are made when they are asked for: of most trees few are wide enough to be seen.
export const callersTree = (tree, {starts, weights, top}) => {
  const frame = [top === undefined ? tree.frame(tree.root) : top], up = [-1], depth = [0], found = [];
  const members = [Int32Array.from(starts, (_, m) => m)];  // by frame: numbers of starts
  const at = [Int32Array.from(starts)];                    // where these are in `tree`
  const totals = weights.map((weight) => [starts.reduce((sum, i) => sum + weight(i), 0)]);
  const add = (caller, f, ofMembers, places) => {
    frame.push(f);
    up.push(caller);
    depth.push(depth[caller] + 1);
    members.push(ofMembers);
    at.push(places);
    weights.forEach((weight, side) => totals[side].push(ofMembers.reduce((sum, m) => sum + weight(starts[m]), 0)));
    return frame.length - 1;
  };
  const callees = (i) => {
    if (found[i] !== undefined) return found[i];
    const groups = new Map(), isAbove = i === 0 && top === undefined;
    members[i].forEach((m, n) => {
      const place = isAbove ? at[i][n] : tree.parent(at[i][n]);
      if (place < 0 || place === tree.root) return;
      const f = tree.frame(place);
      if (!groups.has(f)) groups.set(f, [[], []]);
      groups.get(f)[0].push(m);
      groups.get(f)[1].push(place);
    });
    found[i] = [...groups].map(([f, [ofMembers, places]]) => add(i, f, ofMembers, places));
    return found[i].sort((a, b) => totals[0][b] - totals[0][a] || frame[a] - frame[b]);
  };
  return {
    root: 0,
    parent: (i) => up[i],
    frame: (i) => frame[i],
    total: (i, side = 0) => totals[side][i],
    callees,
    // A frame as one of its starts and the number of steps from the root; and back.
    placeOf: (i) => [i === 0 ? -1 : starts[members[i][0]], depth[i]],
    nodeAt: (start, steps) => {
      let i = 0, place = start;
      for (let step = 0; step < steps && i >= 0; step++) {
        if (step > 0 || top !== undefined) place = tree.parent(place);
        if (place < 0) return 0;
        i = callees(i).find((one) => frame[one] === tree.frame(place)) ?? -1;
      }
      return Math.max(i, 0);
    }
  };
};

// The frames of a function that no other of it calls.
export const outermost = (tree, isWanted) => {
  const isInside = new Uint8Array(tree.count), found = [];
  for (let place = 1; place < tree.count; place++) {
    const i = tree.root === 0 ? place : tree.root - place;
    isInside[i] = isInside[tree.parent(i)];
    if (isInside[i] || !isWanted(tree.frame(i))) continue;
    isInside[i] = 1;
    found.push(i);
  }
  return found;
};
