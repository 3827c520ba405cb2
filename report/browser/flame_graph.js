// What flame graphs in pages and pictures have in common: where frames are, the way from one to another, and what is said
// of one. A graph is drawn by its view: as elements of SVG, or on a canvas.
//
// A tree is {root, parent(i), total(i), callees(i)}: frames by number, parent -1 above the root, callees from left to right.
// `missing(i)`, if it has that, is the weight of callees that it does not have.
import {grouped, share, signed} from './words.js';

const LEAST_GAP = 3;  // px

// The frames that are at least `least` px wide when `top` takes the whole `width`; of more than `most` the widest. Its
// callers are as wide. Frames have places: callers before callees, in a row from left to right; row r has those from
// starts[r] to starts[r + 1]. Where callees side by side are too thin is a gap: {caller, x, w, row, count, weight}, without a
// count for callees that are missing.
export const layOut = (tree, {top, width, least, most = Infinity}) => {
  const nodes = [], x = [], w = [], row = [], starts = [], gaps = [], whole = tree.total(top);
  const put = (i, left, wide, depth) => {
    if (depth === starts.length) starts.push(nodes.length);
    nodes.push(i);
    x.push(left);
    w.push(wide);
    row.push(depth);
  };
  const way = [];
  for (let i = top; i >= 0; i = tree.parent(i)) way.push(i);
  way.reverse().forEach((i, depth) => put(i, 0, width, depth));
  const upTo = way.length - 1;  // the row of `top`
  for (let place = upTo; place < nodes.length && whole > 0; place++) {
    let left = x[place], count = 0, weight = 0;
    const caller = nodes[place], wideOf = (part) => part / whole * width;
    const closeGap = () => {
      const wide = wideOf(weight);
      if (wide >= LEAST_GAP) gaps.push({caller, x: left - wide, w: wide, row: row[place] + 1, count, weight});
      count = weight = 0;
    };
    for (const callee of tree.callees(caller)) {
      const total = tree.total(callee), wide = wideOf(total);
      if (wide >= least) {
        closeGap();
        put(callee, left, wide, row[place] + 1);
      } else {
        count++;
        weight += total;
      }
      left += wide;
    }
    closeGap();
    weight = tree.missing?.(caller) || 0;
    left += wideOf(weight);
    closeGap();
  }
  // A frame is as wide as its callees at least, so none stays without its caller.
  if (nodes.length > most)
    return layOut(tree, {top, width, least: Float64Array.from(w).sort()[nodes.length - most]});
  const rows = gaps.reduce((most, gap) => Math.max(most, gap.row + 1), starts.length);
  const places = new Map(nodes.map((i, place) => [i, place]));
  while (starts.length <= rows) starts.push(nodes.length);
  return {rows, starts, nodes, x, w, row, gaps, upTo, width, places};
};

// What is said of a gap; `all`: the weight of the whole graph; `missing`: of callees that are missing.
export const gapText = ({count, weight}, all, missing) =>
    `${count > 0 ? `${grouped(count)} thinner` : missing}, ${share(weight, all)}`;

// What a key leads to from a frame of the layout: its caller, its widest callee, or the frame beside it; -1: none.
export const frameAt = (tree, layout, from, way) => {
  if (way === 'caller') return tree.parent(from);
  const place = layout.places.get(from);
  if (way === 'callee') {
    const callees = tree.callees(from).filter((i) => layout.places.has(i));
    return callees.reduce((widest, i) => (widest < 0 || tree.total(i) > tree.total(widest) ? i : widest), -1);
  }
  const next = place + (way === 'right' ? 1 : -1);
  return layout.row[next] === layout.row[place] ? layout.nodes[next] : -1;
};
// The next frame, or with -1 the previous one, that matches; -1: none does.
export const matchAfter = (layout, from, step, isMatch) => {
  const count = layout.nodes.length, at = layout.places.has(from) ? layout.places.get(from) : -1;
  for (let tried = 1; tried <= count; tried++) {
    const i = layout.nodes[((at + step * tried) % count + count) % count];
    if (isMatch(i)) return i;
  }
  return -1;
};

// What is said of a frame: its name first. `name`: {text, module, line}, `kind`: in words; `self`: undefined in a graph of callers; `top`: what is zoomed to;
// `all`: what it is a share of, called `whole`; `shown(weight)`: with its unit.
export const frameFacts = (tree, i, {name, kind, self, top, all, whole, shown}) => {
  const lines = [name.text], total = tree.total(i), caller = tree.parent(i), inView = tree.total(top);
  const where = [name.module, kind, name.line].filter((word) => word).join(', ');
  if (where !== '') lines.push(where);
  const shares = [`${share(total, all)} of ${whole}`];
  if (top !== tree.root && inView > 0 && total <= inView) shares.push(`${share(total, inView)} of the view`);
  if (caller >= 0 && caller !== tree.root) shares.push(`${share(total, tree.total(caller))} of its ${self === undefined ? 'callee' : 'caller'}`);
  lines.push(`total ${shown(total)}: ${shares.join(', ')}`);
  if (self !== undefined) lines.push(`self ${shown(self)}: ${share(self, all)} of ${whole}`);
  return lines;
};
// Of a difference: from one fraction to the other.
export const pointsText = (was, is) => `${signed(100 * (is - was))} points`;
export const changeFact = (was, is, [wasName, isName] = ['before', 'after']) =>
    `${wasName} ${(100 * was).toFixed(2)} %, ${isName} ${(100 * is).toFixed(2)} %: ${pointsText(was, is)}`;
