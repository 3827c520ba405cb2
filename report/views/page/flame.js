// The flame graph of the selection, on a canvas: callers above what they call. Frames that are wide enough to
// be seen are laid out once for each selection, zoom and width; of these the rows in sight are drawn.
import {element} from '../../browser/dom.js';
import {changeFact, frameAt, frameFacts, layOut, matchAfter} from '../../browser/flame_graph.js';
import {changeClass, changeLegend, frameClass, KINDS, kindLegend} from '../../browser/frame_looks.js';
import {onKeys} from '../../browser/keys.js';
import {fitted} from '../../browser/labels.js';
import {amount} from '../../browser/words.js';

import {colour, dragOn, isDark, pen, showTip} from './canvas.js';

const ROW = 18, LEAST = 0.4;

export const makeFlame = (app) => {
  const {model} = app, {tree, frames} = model;
  const canvas = element('canvas', {
    tabindex: 0,
    role: 'img',
    class: 'flame',
    'aria-label': 'Flame graph of the selection. Arrow keys walk through the frames, Enter zooms in, ' +
        'Escape zooms out; the table beside it has the same functions.'
  });
  const spacer = element('div', {class: 'spacer'}, canvas),
        box = element('div', {class: 'scroll flamebox'}, spacer);
  const legend = element('p', {class: 'legend'});
  const status = element('p', {class: 'status', role: 'status', 'aria-live': 'polite'});
  const without = element('p', {class: 'without'});
  let chosen = -1, layout = null, palette = new Map();

  // What frames are as wide as: of a comparison either side.
  const sides = () =>
      (app.state.side === 'before' && app.selection.before ? app.selection.before : app.selection);
  const total = (i, of = sides()) => of.sums[i + 1] - of.sums[tree.first[i]];
  const shape = {
    root: tree.root,
    parent: (i) => tree.parent[i],
    total: (i) => total(i),
    callees: (i) => {
      const found = [];
      for (let child = i - 1; child >= tree.first[i]; child = tree.first[child] - 1) found.push(child);
      return found.reverse();
    }
  };
  const nameOf = (i) => {
    const frame = tree.frame[i];
    return {
      text: frames.name(frame),
      module: frames.module(frame),
      line: frames.line(frame),
      kind: frames.kind(frame)
    };
  };
  const isMatch = (i) => app.matches.frames !== null && app.matches.frames[tree.frame[i]] === 1;

  const change = (i) => {
    const {before, all} = app.selection;
    return [before.all > 0 ? total(i, before) / before.all : 0, all > 0 ? total(i, app.selection) / all : 0];
  };
  const colourOf = (look) => {
    const [light, dark] = model.head.fills[`.safe .${look}`] || model.head.fills[`.${look}`];
    return isDark() ? dark : light;
  };
  const fillOf = (i) => {
    if (app.selection.before) return colourOf(changeClass(...change(i)));
    const frame = tree.frame[i];
    if (!palette.has(frame)) palette.set(frame, colourOf(frameClass('safe', nameOf(i))));
    return palette.get(frame);
  };

  const drawRows = () => {
    const height = Math.min(box.clientHeight || 400, layout.rows * ROW), top = box.scrollTop;
    const context = pen(canvas, layout.width, Math.max(height, ROW)), ink = colour('ink');
    canvas.style.top = '0px';
    canvas.drawn = [];  // of what is in sight: [node, x, y, width]
    const isSearch = app.matches.frames !== null && app.matches.frames.includes(1);
    context.fillStyle = ink;
    if (sides().all === 0) return context.fillText('No sample of the selection has a weight.', 8, ROW / 2);
    const firstRow = Math.max(Math.floor(top / ROW), 0),
          endRow = Math.min(Math.ceil((top + height) / ROW) + 1, layout.rows);
    for (let place = layout.starts[firstRow]; place < layout.starts[endRow]; place++) {
      const i = layout.nodes[place], x = layout.x[place], y = layout.row[place] * ROW - top, w = layout.w[place];
      canvas.drawn.push([i, x, y, w]);
      const isPale = isSearch && !isMatch(i);
      context.globalAlpha = isPale ? 0.35 : layout.row[place] < layout.upTo ? 0.6 : 1;
      context.fillStyle = isMatch(i) ? colour('match') : fillOf(i);
      context.fillRect(x, y, Math.max(w - 0.5, isMatch(i) ? 2 : 0.3), ROW - 1);
      context.globalAlpha = isPale ? 0.75 : context.globalAlpha;
      const words = fitted(frames.name(tree.frame[i]), w - 6, context);
      if (words !== '') {
        context.fillStyle = isMatch(i) ? colour('match-ink') : ink;
        context.fillText(words, x + 3, y + ROW / 2);
      }
      context.globalAlpha = 1;
      if (i === chosen) {
        context.strokeStyle = ink;
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, Math.max(w - 2, 2), ROW - 3);
      }
    }
  };

  const facts = (i) => {
    const {all, own} = sides(), name = nameOf(i);
    const lines = frameFacts(shape, i, {
      name,
      kind: KINDS[name.kind],
      self: own[i],
      top: app.state.zoom,
      all,
      whole: 'the selection',
      shown: (weight) => amount(weight, app.unit())
    });
    return app.selection.before ? [...lines, changeFact(...change(i))] : lines;
  };

  const at = (x, y) =>
      (canvas.drawn ||
       []).find(([, left, top, w]) => x >= left && x < left + Math.max(w, 1) && y >= top && y < top + ROW);
  const choose = (i) => {
    chosen = i;
    status.textContent = facts(i).join(' · ');
    const y = tree.depth[i] * ROW;
    if (y < box.scrollTop) box.scrollTop = y;
    if (y + ROW > box.scrollTop + box.clientHeight) box.scrollTop = y + ROW - box.clientHeight;
    drawRows();
  };
  const zoom = (i) => app.go({zoom: i});
  const move = (way) => {
    const next = layout.places.has(chosen) ? frameAt(shape, layout, chosen, way) : app.state.zoom;
    if (next >= 0) choose(next);
  };
  const toMatch = (step) => {
    const next = matchAfter(layout, chosen, step, isMatch);
    if (next < 0) return;
    choose(next);
    box.scrollIntoView({block: 'nearest'});
  };
  const shown = () => (layout.places.has(chosen) ? chosen : app.state.zoom);
  onKeys(canvas, {
    ArrowUp: () => move('caller'),
    ArrowDown: () => move('callee'),
    ArrowLeft: () => move('left'),
    ArrowRight: () => move('right'),
    Enter: () => zoom(shown()),
    Escape: () => {
      if (app.state.zoom !== tree.root) zoom(tree.parent[app.state.zoom]);
    },
    f: () => {
      if (shown() !== tree.root) app.go({focus: frames.name(tree.frame[shown()]), zoom: tree.root});
    }
  });
  dragOn(canvas, {
    moved: () => {},
    ended: () => {},
    clicked: (x, y) => {
      const hit = at(x, y);
      if (!hit) return;
      choose(hit[0]);
      zoom(hit[0]);
    }
  });
  canvas.addEventListener('pointermove', (event) => {
    const hit = at(event.offsetX, event.offsetY);
    showTip(event, hit ? facts(hit[0]) : null);
  });
  canvas.addEventListener('pointerleave', (event) => showTip(event, null));
  box.addEventListener('scroll', drawRows);

  const kinds = new Set(Array.from({length: frames.count}, (_, i) => frames.kind(i)));
  const drawLegend = () => {
    const entries = app.selection.before ? changeLegend('more', 'as much') : kindLegend(kinds);
    legend.replaceChildren(...entries.map(([look, words]) => {
      const mark = element('span', {class: 'mark'});
      mark.style.background = colourOf(look);
      return element('span', {}, mark, words);
    }));
  };

  const side = element(
      'select', {'aria-label': 'what frames are as wide as', onchange: () => app.go({side: side.value})},
      element('option', {value: 'after'}, 'as wide as after'),
      element('option', {value: 'before'}, 'as wide as before'));
  return {
    element: element('div', {class: 'flameview'}, ...(model.base ? [side] : []), without, legend, box, status),
    toMatch,
    draw: () => {
      side.value = app.state.side;
      const event = model.events[app.state.event];
      without.textContent =
          event.hasStacks ? '' : `${event.name} was recorded without stacks: each sample has one frame, where it was taken.`;
      palette = new Map();
      drawLegend();
      layout = layOut(shape, {top: app.state.zoom, width: Math.max(box.clientWidth, 100), least: LEAST});
      spacer.style.height = `${layout.rows * ROW}px`;
      if (!layout.places.has(chosen)) {
        chosen = -1;
        status.textContent = '';
      }
      drawRows();
    }
  };
};
