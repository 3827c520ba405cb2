// What heat maps in pages and pictures have in common: boxes of time and value, and the choice of some of them. A map is
// drawn by its view: as elements of SVG, or on a canvas.
//
// A map is {columns, rows, count(column, row), wide, tall}: the lowest row is 0, a box is so many px wide and tall.
import {ARROWS} from './keys.js';
import {counted, share} from './words.js';

// The box at a place in px from the upper left corner: [column, row]; null: outside.
export const boxAt = (map, x, y) => {
  const column = Math.floor(x / map.wide), row = map.rows - 1 - Math.floor(y / map.tall);
  return column >= 0 && column < map.columns && row >= 0 && row < map.rows ? [column, row] : null;
};
const within = (number, end) => Math.min(Math.max(number, 0), end - 1);
// The nearest box to that place.
export const nearestBox = (map, x, y) =>
    [within(Math.floor(x / map.wide), map.columns), within(map.rows - 1 - Math.floor(y / map.tall), map.rows)];
// The boxes between two, both included.
export const areaOf = (one, other) => ({
  first: Math.min(one[0], other[0]),
  last: Math.max(one[0], other[0]),
  low: Math.min(one[1], other[1]),
  high: Math.max(one[1], other[1])
});
export const placeOf = (map, {first, last, low, high}) => ({
  x: first * map.wide,
  y: (map.rows - 1 - high) * map.tall,
  width: (last - first + 1) * map.wide,
  height: (high - low + 1) * map.tall
});
// `times`, `values`: of the area, as text.
export const areaFacts = (map, {first, last, low, high}, {total, times, values}) => {
  let sum = 0;
  for (let column = first; column <= last; column++)
    for (let row = low; row <= high; row++) sum += map.count(column, row);
  return [`${counted(sum, 'sample')}, ${share(sum, total)} of all`, times, values];
};

// The boxes that are chosen: those between an anchor and a corner, which keys and pointers move.
export const makeChoice = (mapNow, changed) => {
  let anchor = null, corner = null;
  const choose = (from, to) => {
    anchor = from;
    corner = to;
    changed();
  };
  const move = ([columns, rows], extend) => {
    const map = mapNow();
    if (map === null) return;
    const to = corner === null ? [0, 0] :
                                 [within(corner[0] + columns, map.columns), within(corner[1] + rows, map.rows)];
    choose(extend && anchor !== null ? anchor : to, to);
  };
  // To the next box with samples, column by column; after the last comes the first.
  const toNext = (step) => {
    const map = mapNow();
    if (map === null) return;
    const count = map.columns * map.rows, at = corner === null ? (step > 0 ? -1 : 0) : corner[0] * map.rows + corner[1];
    for (let tried = 1; tried <= count; tried++) {
      const next = ((at + step * tried) % count + count) % count, box = [Math.floor(next / map.rows), next % map.rows];
      if (map.count(...box) > 0) return choose(box, box);
    }
  };
  // null: none, or those of a map that had more boxes.
  const area = () => {
    const map = mapNow();
    if (corner === null || map === null) return null;
    const chosen = areaOf(anchor, corner);
    return chosen.last < map.columns && chosen.high < map.rows ? chosen : null;
  };
  const keys = {n: () => toNext(1), N: () => toNext(-1)};
  for (const key in ARROWS) keys[key] = (event) => move(ARROWS[key], event.shiftKey);
  return {
    keys,
    choose,
    clear: () => choose(null, null),
    area,
    anchor: () => anchor,
    corner: () => corner
  };
};
