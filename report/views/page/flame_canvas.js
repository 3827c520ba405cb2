// A flame graph on a canvas. Frames that are wide enough to be seen are laid out once for each tree, zoom and width; of these
// the rows in sight are drawn. Callers are above what they call, or, in a graph that `isUpward`, the root is at the bottom.
import {element} from '../../browser/dom.js';
import {frameAt, layOut, matchAfter} from '../../browser/flame_graph.js';
import {onKeys} from '../../browser/keys.js';
import {fitted, fittedShare} from '../../browser/labels.js';

import {colour, dragOn, isPrinted, pen, tipsOn} from './canvas.js';

const ROW = 18, LEAST = 0.4, LEAST_PRINTED = 1.5, SHEET = 880;  // px

// `fillOf(graph, i)`, `factsOf(graph, i)`: the look of a frame, and what is said of it; `gapOf(gap)`: of frames too thin. `chosen(graph, i)`: a frame was
// chosen; `entered(graph, i, isAlt)`: by click or Enter; `left(graph)`: by Escape.
export const makeFlameCanvas = (app, {label, isUpward = false, fillOf, factsOf, gapOf, chosen, entered, left}) => {
  const {frames} = app.model;
  const canvas = element('canvas', {tabindex: 0, role: 'img', class: 'flame', 'aria-label': label});
  const spacer = element('div', {class: 'spacer'}, canvas),
        box = element('div', {class: 'scroll flamebox'}, spacer);
  const graph = {element: box, canvas, tree: null, top: 0, layout: null, chosen: -1, none: ''};
  const isMatch = (i) => app.matches.frames !== null && app.matches.frames[graph.tree.frame(i)] === 1;
  const lineOf = (row) => (isUpward ? graph.layout.rows - 1 - row : row);

  const drawFrame = (context, place, y, isSearch) => {
    const {layout} = graph, i = layout.nodes[place], x = layout.x[place], w = layout.w[place];
    const isFound = isMatch(i), isPale = isSearch && !isFound, ink = colour('ink');
    canvas.drawn.push([i, x, y, w]);
    context.globalAlpha = isPale ? 0.35 : layout.row[place] < layout.upTo ? 0.6 : 1;
    context.fillStyle = isFound ? colour('match') : fillOf(graph, i);
    context.fillRect(x, y, Math.max(w - 0.5, isFound ? 2 : 0.3), ROW - 1);
    context.globalAlpha = isPale ? 0.75 : context.globalAlpha;
    const words = fitted(frames.name(graph.tree.frame(i)), w - 6, context);
    if (words !== '') {
      context.fillStyle = isFound ? colour('match-ink') : ink;
      context.fillText(words, x + 3, y + ROW / 2);
    }
    context.globalAlpha = 1;
    if (i !== graph.chosen) return;
    context.strokeStyle = ink;
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, Math.max(w - 2, 2), ROW - 3);
  };
  const drawGap = (context, gap, y) => {
    context.fillStyle = colour('box');
    context.fillRect(gap.x, y, gap.w - 0.5, ROW - 1);
    context.fillStyle = colour('muted');
    context.fillText(fittedShare(gapOf(gap), gap.w - 6, context), gap.x + 3, y + ROW / 2);
  };
  const drawRows = () => {
    const {layout} = graph, tall = layout.rows * ROW, from = box.scrollTop;
    const height = isPrinted() ? tall : Math.min(box.clientHeight || 400, tall);
    const context = pen(canvas, layout.width, Math.max(height, ROW));
    // A canvas is not cut between sheets.
    if (isPrinted() && tall > SHEET)
      Object.assign(canvas.style, {height: `${SHEET}px`, width: `${layout.width * SHEET / tall}px`});
    canvas.style.top = '0px';
    canvas.drawn = [];  // of what is in sight: [node, x, y, width]
    const isSearch = app.matches.frames !== null && app.matches.frames.includes(1);
    context.fillStyle = colour('ink');
    if (graph.none !== '') return context.fillText(graph.none, 8, ROW / 2);
    const end = Math.min(Math.ceil((from + height) / ROW) + 1, layout.rows);
    for (let line = Math.max(Math.floor(from / ROW), 0); line < end; line++) {
      const row = lineOf(line);
      for (let place = layout.starts[row]; place < layout.starts[row + 1]; place++)
        drawFrame(context, place, line * ROW - from, isSearch);
    }
    for (const gap of layout.gaps) {
      const y = lineOf(gap.row) * ROW - from;
      if (y > -ROW && y < height) drawGap(context, gap, y);
    }
  };

  // What is at a point, or, of frames thinner than a pixel, beside it.
  const at = (x, y) => {
    const find = (least) => (canvas.drawn || []).find(
        ([, begin, top, w]) => x >= begin && x < begin + Math.max(w, least) && y >= top && y < top + ROW);
    return find(0) || find(1);
  };
  const choose = (i) => {
    graph.chosen = i;
    const y = lineOf(graph.layout.row[graph.layout.places.get(i)]) * ROW;
    if (y < box.scrollTop) box.scrollTop = y;
    if (y + ROW > box.scrollTop + box.clientHeight) box.scrollTop = y + ROW - box.clientHeight;
    chosen(graph, i);
    drawRows();
  };
  const isShown = () => graph.layout.places.has(graph.chosen);
  const move = (way) => {
    const next = isShown() ? frameAt(graph.tree, graph.layout, graph.chosen, way) : graph.top;
    if (next >= 0) choose(next);
  };
  onKeys(canvas, {
    ArrowUp: () => move(isUpward ? 'callee' : 'caller'),
    ArrowDown: () => move(isUpward ? 'caller' : 'callee'),
    ArrowLeft: () => move('left'),
    ArrowRight: () => move('right'),
    Enter: () => entered(graph, isShown() ? graph.chosen : graph.top, false),
    Escape: () => left(graph)
  });
  dragOn(canvas, {
    moved: () => {},
    ended: () => {},
    clicked: (x, y, event) => {
      const hit = at(x, y);
      if (!hit) return;
      const isSecond = graph.chosen === hit[0] || event.pointerType !== 'touch';  // a first tap says what is there
      choose(hit[0]);
      if (isSecond) entered(graph, hit[0], event.altKey);
    }
  });
  tipsOn(canvas, (x, y) => {
    const hit = at(x, y), row = lineOf(Math.floor((y + box.scrollTop) / ROW));
    const gap = graph.layout.gaps.find((one) => one.row === row && x >= one.x && x < one.x + one.w);
    return hit ? factsOf(graph, hit[0]) : gap ? [gapOf(gap)] : null;
  });
  box.addEventListener('scroll', drawRows);

  // Of another tree the same frame stays chosen, if it is there.
  const takeTree = (tree) => {
    const before = graph.tree, was = graph.chosen;
    graph.tree = tree;
    if (before === tree || before === null || was < 0) return;
    const now = tree.nodeAt(...before.placeOf(was));
    graph.chosen = tree.frame(now) === before.frame(was) ? now : -1;
  };
  return Object.assign(graph, {
    // `top`: of the tree, what is as wide as the canvas; `none`: why there is nothing to be seen.
    draw: (tree, top, none) => {
      const isOther = graph.tree !== tree;
      takeTree(tree);
      const width = Math.max(box.clientWidth, 100), least = isPrinted() ? LEAST_PRINTED : LEAST;
      Object.assign(graph, {top, none, layout: layOut(tree, {top, width, least})});
      const tall = graph.layout.rows * ROW;
      spacer.style.height = `${isPrinted() ? Math.min(tall, SHEET) : tall}px`;
      if (!isShown()) graph.chosen = -1;
      if (isOther && isUpward) box.scrollTop = graph.layout.rows * ROW;
      drawRows();
    },
    toMatch: (step) => {
      const next = matchAfter(graph.layout, graph.chosen, step, isMatch);
      if (next < 0) return;
      choose(next);
      box.scrollIntoView({block: 'nearest'});
    }
  });
};
