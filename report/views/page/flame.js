// The flame graph of the selection, on a canvas: callers above what they call. Frames that are wide enough to
// be seen are laid out once for each selection, zoom and width; of these the rows in sight are drawn.
import {amount, colour, dragOn, element, fitted, pen, share, showTip} from './dom.js';

const ROW = 18, LEAST = 0.4;

// By the kind of code, in colours that readers who do not see red and green distinguish; as flame graphs have
// them.
const KINDS = {
  a: ['', 0xe4dfd6],
  t: ['thread', 0xe4dfd6],
  u: ['user', 0xf2b45a],
  i: ['inlined', 0xf3e173],
  k: ['kernel', 0x74b9ea],
  j: ['JIT', 0x5ec9a5],
  b: ['BPF', 0xe0a3c6],
  n: ['without a symbol', 0xc9c9c9]
};
// Of a comparison: less to more.
const CHANGES = [
  [-0.05, 0x4c97d3, 'less'], [-0.01, 0x7db5e2], [-0.002, 0xaed2ee], [-0.0005, 0xd3e6f5, 'a little less'],
  [0.0005, 0xdcdcdc, 'as much'], [0.002, 0xfbe3c4, 'a little more'], [0.01, 0xf9cd93], [0.05, 0xf3ae57],
  [Infinity, 0xe58a1f, 'more']
];
const isDark = () => matchMedia('(prefers-color-scheme: dark)').matches;
const css = (rgb, factor) => `rgb(${
        [16, 8, 0]
            .map((shift) => Math.round((rgb >> shift & 255) * factor * (isDark() ? 0.45 : 1)))
            .join(' ')})`;
const shadeOf = (text) => {
  let hash = 5;
  for (let i = 0; i < text.length && i < 100; i++) hash = (hash * 31 + text.charCodeAt(i)) % 1000003;
  return 1 - 0.06 * (hash % 3);
};

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
  const shown = () => frames.name(tree.frame[chosen]);

  // Wide frames below `top`, and its callers over the whole width: by row.
  const lay = (width) => {
    const top = app.state.zoom, {sums} = sides(), scale = total(top) > 0 ? width / total(top) : 0;
    const left = sums[tree.first[top]], nodes = [], up = [];
    for (let i = tree.parent[top]; i >= 0; i = tree.parent[i]) up.push(i);
    const open = total(top) > 0 ? [top] : [];
    while (open.length > 0) {
      const i = open.pop();
      nodes.push(i);
      for (let child = i - 1; child >= tree.first[i]; child = tree.first[child] - 1)
        if (total(child) * scale >= LEAST) open.push(child);
    }
    const rows = nodes.reduce((most, i) => Math.max(most, tree.depth[i]), tree.depth[top]) + 1;
    const starts = new Uint32Array(rows + 1);
    const all = up.concat(nodes);
    for (const i of all) starts[tree.depth[i] + 1]++;
    for (let row = 0; row < rows; row++) starts[row + 1] += starts[row];
    const next = starts.slice(), byRow = new Uint32Array(all.length);
    for (const i of all) byRow[next[tree.depth[i]]++] = i;
    const upTo = tree.depth[top];
    return {
      rows,
      starts,
      byRow,
      width,
      upTo,
      x: (i) => (tree.depth[i] < upTo ? 0 : (sums[tree.first[i]] - left) * scale),
      w: (i) => (tree.depth[i] < upTo ? width : total(i) * scale)
    };
  };

  const change = (i) => {
    const {before, all} = app.selection;
    return [before.all > 0 ? total(i, before) / before.all : 0, all > 0 ? total(i, app.selection) / all : 0];
  };
  const fillOf = (i) => {
    if (app.selection.before) {
      const [was, is] = change(i),
                  step = CHANGES.find(([most]) => is - was < most) || CHANGES[CHANGES.length - 1];
      return css(step[1], 1);
    }
    const frame = tree.frame[i];
    if (!palette.has(frame))
      palette.set(frame, css((KINDS[frames.kind(frame)] || KINDS.u)[1], shadeOf(frames.name(frame))));
    return palette.get(frame);
  };

  const drawRows = () => {
    const height = Math.min(box.clientHeight || 400, layout.rows * ROW), top = box.scrollTop;
    const context = pen(canvas, layout.width, Math.max(height, ROW)), ink = colour('ink');
    canvas.style.top = '0px';
    canvas.drawn = [];  // of what is in sight: [node, x, y, width]
    const firstRow = Math.max(Math.floor(top / ROW), 0),
          lastRow = Math.min(Math.ceil((top + height) / ROW), layout.rows - 1);
    for (let row = firstRow; row <= lastRow; row++) {
      for (let at = layout.starts[row]; at < layout.starts[row + 1]; at++) {
        const i = layout.byRow[at], x = layout.x(i), y = row * ROW - top, w = layout.w(i),
              frame = tree.frame[i];
        const isMatch = app.matches.frames !== null && app.matches.frames[frame] === 1;
        canvas.drawn.push([i, x, y, w]);
        context.globalAlpha = row < layout.upTo ? 0.6 : 1;
        context.fillStyle = isMatch ? colour('match') : fillOf(i);
        context.fillRect(x, y, Math.max(w - 0.5, 0.3), ROW - 1);
        const words = fitted(context, frames.name(frame), w - 6);
        if (words !== '') {
          context.fillStyle = isMatch ? colour('match-ink') : ink;
          context.fillText(words, x + 3, y + ROW / 2);
        }
        context.globalAlpha = 1;
        if (i === chosen) {
          context.strokeStyle = ink;
          context.lineWidth = 2;
          context.strokeRect(x + 1, y + 1, Math.max(w - 2, 2), ROW - 3);
        }
      }
    }
    if (layout.rows === 1 && sides().all === 0) {
      context.fillStyle = ink;
      context.fillText('No sample of the selection has a weight.', 8, ROW / 2);
    }
  };

  const facts = (i) => {
    const unit = app.unit(), {all, own} = sides(), frame = tree.frame[i], here = total(i),
          top = total(app.state.zoom);
    const where = [frames.module(frame), frames.line(frame), (KINDS[frames.kind(frame)] || [''])[0]]
                      .filter((word) => word)
                      .join(', ');
    const shares = [`${share(here, all)} of the selection`];
    if (app.state.zoom !== tree.root && top > 0 && here <= top)
      shares.push(`${share(here, top)} of the view`);
    if (tree.parent[i] >= 0 && tree.parent[i] !== tree.root)
      shares.push(`${share(here, total(tree.parent[i]))} of its caller`);
    const lines = [frames.name(frame)];
    if (where !== '') lines.push(where);
    lines.push(
        `total ${amount(here, unit)}: ${shares.join(', ')}`,
        `self ${amount(own[i], unit)}: ${share(own[i], all)}`);
    if (app.selection.before) {
      const [was, is] = change(i).map((one) => 100 * one);
      lines.push(`before ${was.toFixed(2)} %, after ${is.toFixed(2)} %: ${is < was ? '−' : '+'}${
          Math.abs(is - was).toFixed(2)} points`);
    }
    return lines;
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
  const beside = (step) => {
    const row = tree.depth[chosen], from = layout.starts[row], to = layout.starts[row + 1];
    const inRow = [...layout.byRow.subarray(from, to)].sort((a, b) => layout.x(a) - layout.x(b));
    const next = inRow[inRow.indexOf(chosen) + step];
    if (next !== undefined) choose(next);
  };
  const widestCallee = () => {
    let widest = -1;
    for (let child = chosen - 1; child >= tree.first[chosen]; child = tree.first[child] - 1)
      if (widest < 0 || total(child) > total(widest)) widest = child;
    return widest >= 0 && total(widest) > 0 && layout.byRow.includes(widest) ? widest : -1;
  };
  const isLaid = (i) => i >= 0 && tree.depth[i] < layout.rows &&
      layout.byRow.subarray(layout.starts[tree.depth[i]], layout.starts[tree.depth[i] + 1]).includes(i);
  const toMatch = (step) => {
    if (app.matches.frames === null) return;
    const matching = [...layout.byRow].filter((i) => app.matches.frames[tree.frame[i]] === 1);
    if (matching.length > 0)
      choose(matching[(matching.indexOf(chosen) + step + matching.length) % matching.length]);
  };
  const keys = {
    ArrowUp: () => {
      if (tree.parent[chosen] >= 0) choose(tree.parent[chosen]);
    },
    ArrowDown: () => {
      if (widestCallee() >= 0) choose(widestCallee());
    },
    ArrowLeft: () => beside(-1),
    ArrowRight: () => beside(1),
    Enter: () => zoom(chosen),
    Escape: () => {
      if (app.state.zoom !== tree.root) zoom(tree.parent[app.state.zoom]);
    },
    f: () => {
      if (chosen !== tree.root) app.go({focus: shown(), zoom: tree.root});
    },
    n: () => toMatch(1),
    N: () => toMatch(-1)
  };
  canvas.addEventListener('keydown', (event) => {
    if (!Object.hasOwn(keys, event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (!isLaid(chosen)) {
      choose(app.state.zoom);
      if (event.key.startsWith('Arrow')) return;
    }
    keys[event.key]();
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

  const isThere = new Set(Array.from({length: frames.count}, (_, i) => frames.kind(i)));
  const drawLegend = () => {
    const entries = app.selection.before ?
        CHANGES.filter(([, , words]) => words).map(([, rgb, words]) => [rgb, words]) :
        Object.entries(KINDS)
            .filter(([kind, [words]]) => words !== '' && isThere.has(kind))
            .map(([, [words, rgb]]) => [rgb, words]);
    legend.replaceChildren(...entries.map(([rgb, words]) => {
      const mark = element('span', {class: 'mark'});
      mark.style.background = css(rgb, 1);
      return element('span', {}, mark, words);
    }));
  };

  const side = element(
      'select', {'aria-label': 'what frames are as wide as', onchange: () => app.go({side: side.value})},
      element('option', {value: 'after'}, 'as wide as after'),
      element('option', {value: 'before'}, 'as wide as before'));
  return {
    element: element('div', {class: 'flameview'}, ...(model.base ? [side] : []), without, legend, box, status),
    draw: () => {
      side.value = app.state.side;
      const event = model.events[app.state.event];
      without.textContent =
          event.hasStacks ? '' : `${event.name} was recorded without stacks: each sample has one frame, where it was taken.`;
      palette = new Map();
      drawLegend();
      const width = Math.max(box.clientWidth, 100);
      layout = lay(width);
      spacer.style.height = `${layout.rows * ROW}px`;
      if (!isLaid(chosen)) {
        chosen = -1;
        status.textContent = '';
      }
      drawRows();
    }
  };
};
