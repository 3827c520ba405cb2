// The script in an SVG of `tacho flamegraph`: zoom, search, keys and other views of the same frames. The SVG is complete
// without it. The script uses no network, and adds names to the document only as text nodes.
//
// Input: <metadata class="modules">, <metadata class="names"> (one line each: "KIND MODULE NAME"), <metadata
// class="lines"> (the source line of each name, may be empty), and in each <g class="pane"> one <rect> for each frame,
// callers first: n= number of its name, w= total, s= self; in a difference b= total before, a= total after, e= noise of
// the percentage. A frame's row is its depth. Frames that are too thin to be drawn are in packed data (write_thin() in
// flame_graph.cc): they are read after the first drawing, searched, and drawn where a zoom makes them wide enough.
//
// The state is in the URL fragment, so that a reload shows the same, and back and forward undo and redo.
(() => {
const svg = document.currentScript.ownerSVGElement, view = document.defaultView;
const setup = svg.dataset;
// LEAST: px, the least width of a drawn frame; MOST: drawn frames, of more the widest.
const ROW = 17, BOX = 16, GAP = 10, LETTER = 6.9, LEAST = Math.max(0.3, Number(setup.least)), MOST = 20000;
const isDifference = setup.before !== undefined;
const KINDS = {
  a: '', u: 'user', k: 'kernel', i: 'inlined', j: 'JIT', b: 'BPF', n: 'without a symbol', t: 'thread',
  v: 'waker', x: 'mark', c: 'several functions of a module', o: 'on the CPU', r: 'runnable', w: 'waiting'
};

const lines = (name) => {
  const found = svg.querySelector('metadata.' + name), text = found ? found.textContent : '';
  return text === '' ? [] : text.split('\n');
};
const modules = lines('modules'), sourceLines = lines('lines');
// Distinct functions; `id` is the index.
const names = lines('names').map((line, id) => {
  const [, kind, module, text] = /^(\w) (\d+) ([^]*)$/.exec(line);
  return {id, kind, module: modules[+module], text, line: sourceLines[id] || ''};
});

// ---- trees ------------------------------------------------------------------------------------------------------

// Frames by number; a frame is after its parent. `self` is the function's own weight. `own` is its total without its
// children: more than `self` if the file does not have them all; in a difference `ownBefore`, `ownAfter`.
const SUMS = [['own', 'total'], ['ownBefore', 'before'], ['ownAfter', 'after']];
const newTree = () =>
    ({name: [], parent: [], self: [], noise: [], own: [], total: [], ownBefore: [], before: [], ownAfter: [], after: []});
const addNode = (tree, parent, name) => {
  tree.name.push(name);
  tree.parent.push(parent);
  tree.self.push(0);
  tree.noise.push(0);
  for (const [own, total] of SUMS) {
    tree[own].push(0);
    tree[total].push(0);
  }
  return tree.name.length - 1;
};
// `weights`: {self, noise, total, before, after}
const addFrame = (tree, parent, name, weights) => {
  const i = addNode(tree, parent, name);
  tree.self[i] = weights.self;
  tree.noise[i] = weights.noise;
  for (const [own, total] of SUMS) {
    tree[own][i] = tree[total][i] = weights[total];
    if (parent >= 0) tree[own][parent] -= weights[total];
  }
  return i;
};
const addUp = (tree) => {
  for (const [own, total] of SUMS) {
    for (let i = tree.name.length - 1; i >= 0; i--) {
      tree[total][i] += tree[own][i];
      if (tree.parent[i] >= 0) tree[total][tree.parent[i]] += tree[total][i];
    }
  }
  return tree;
};

const number = (element, name) => Number(element.getAttribute(name) || 0);

const readTree = (rects) => {
  const tree = newTree(), path = [];
  const rootY = rects.length > 0 ? number(rects[0], 'y') : 0;
  for (const rect of rects) {
    const depth = Math.round(Math.abs(number(rect, 'y') - rootY) / ROW);
    path[depth] = addFrame(tree, depth === 0 ? -1 : path[depth - 1], names[number(rect, 'n')], {
      self: number(rect, 's'), noise: number(rect, 'e'), total: number(rect, 'w'), before: number(rect, 'b'),
      after: number(rect, 'a')
    });
  }
  return tree;
};

// Adds the frames that are too thin to be drawn.
const readThin = async () => {
  const {columns, text} = await openData();
  const kinds = columns.get('name.kind'), ofModules = columns.get('name.module'), marks = columns.get('name.marked');
  for (let i = 0; i < kinds.length; i++) {
    names.push({id: names.length, kind: String.fromCharCode(kinds[i]), module: text(ofModules[i]), text: text(i), line: ''});
    if (marks[i]) panes.forEach((pane) => pane.isMarked.add(names[names.length - 1]));
  }
  panes.forEach((pane) => {
    const column = (name) => columns.get(`${pane.number}.${name}`), at = (values, i) => (values.length > 0 ? values[i] : 0);
    const steps = column('caller'), ofNames = column('name'), totals = column('total'), selves = column('self'),
          befores = column('before'), afters = column('after'), noises = column('noise');
    let caller = 0;
    for (let i = 0; i < steps.length; i++) {
      caller += steps[i];
      addFrame(pane.base, caller, names[ofNames[i]], {
        self: selves[i], noise: at(noises, i), total: totals[i], before: at(befores, i), after: at(afters, i)
      });
    }
  });
};

// The tree with only the calls of one function (`focus`), without functions (`hide`, `modules`), or with recursion joined;
// `how` = {focus, hide, recursion, modules}.
const changedTree = (base, how) => {
  if (how.focus === '' && how.hide.length === 0 && how.modules.length === 0 && !how.recursion) return base;
  const count = base.name.length, tree = newTree(), children = new Map();
  const to = new Int32Array(count), isInside = new Uint8Array(count);
  const hidden = new Set(how.hide), joined = new Set(how.modules), moduleNames = new Map();
  const nameOf = (name) => {
    if (name.module === '' || !joined.has(name.module)) return name;
    if (!moduleNames.has(name.module)) {
      const id = names.length + moduleNames.size;
      moduleNames.set(name.module, {id, kind: 'c', module: name.module, text: `[${name.module}]`, line: ''});
    }
    return moduleNames.get(name.module);
  };
  const child = (parent, name) => {
    const key = parent * 2 * names.length + name.id;
    if (!children.has(key)) children.set(key, addNode(tree, parent, name));
    return children.get(key);
  };
  for (let i = 0; i < count; i++) {
    const parent = base.parent[i];
    if (parent < 0) {
      to[i] = addNode(tree, -1, base.name[i]);
      isInside[i] = how.focus === '' ? 1 : 0;
    } else {
      to[i] = to[parent];
      isInside[i] = isInside[parent] || base.name[i].text === how.focus ? 1 : 0;
      if (isInside[i] && !hidden.has(base.name[i].text)) {
        const name = nameOf(base.name[i]);
        const joins = (how.recursion || name.kind === 'c') && to[i] !== 0 && tree.name[to[i]] === name;
        if (!joins) to[i] = child(to[i], name);
      }
    }
    if (!isInside[i]) continue;
    tree.self[to[i]] += base.self[i];
    if (parent < 0 || to[parent] !== to[i]) tree.noise[to[i]] += base.noise[i];
    for (const [own] of SUMS) tree[own][to[i]] += base[own][i];
  }
  return addUp(tree);
};

// ---- the state in the URL fragment ---------------------------------------------------------------------------------

const initial = () => ({
  zoom: panes.map(() => 0), search: '', inverted: setup.inverted === '1', palette: setup.palette,
  focus: '', hide: [], modules: [], recursion: false
});
let state;

const readState = () => {
  const asked = new URLSearchParams(location.hash.slice(1)), read = initial();
  const zooms = (asked.get('zoom') || '').split(',');
  panes.forEach((pane, i) => { read.zoom[i] = Number(zooms[i]) || 0; });
  read.search = asked.get('search') || '';
  if (asked.has('inverted')) read.inverted = asked.get('inverted') === '1';
  if (palettes.includes(asked.get('palette'))) read.palette = asked.get('palette');
  read.focus = asked.get('focus') || '';
  read.hide = asked.getAll('hide');
  read.modules = asked.getAll('module');
  read.recursion = asked.get('recursion') === '1';
  return read;
};
const addressOf = (wanted) => {
  const usual = initial(), params = new URLSearchParams();
  if (wanted.zoom.some((zoom) => zoom !== 0)) params.set('zoom', wanted.zoom.join(','));
  if (wanted.search !== '') params.set('search', wanted.search);
  if (wanted.inverted !== usual.inverted) params.set('inverted', wanted.inverted ? '1' : '0');
  if (wanted.palette !== usual.palette) params.set('palette', wanted.palette);
  if (wanted.focus !== '') params.set('focus', wanted.focus);
  wanted.hide.forEach((name) => params.append('hide', name));
  wanted.modules.forEach((name) => params.append('module', name));
  if (wanted.recursion) params.set('recursion', '1');
  return '#' + params.toString();
};
// A new state, which the browser's back undoes. Every change goes through the URL, so that links and reloads show it.
const go = (changes) => {
  const address = addressOf({...state, ...changes});
  if (address === (location.hash || '#')) return;
  location.hash = address;  // fires the event hashchange
};
const changesTree = (a, b) => a.focus !== b.focus || a.recursion !== b.recursion ||
    a.hide.join('\n') !== b.hide.join('\n') || a.modules.join('\n') !== b.modules.join('\n');

// `hasMore`: the graphs have got more frames, behind those that they had.
const apply = (hasMore = false) => {
  const before = state;
  state = readState();
  if (hasMore) state.search = before.search;  // may still be typed
  if (!before || hasMore || changesTree(before, state)) {
    panes.forEach((pane) => {
      pane.tree = changedTree(pane.base, state);
      if (!hasMore) pane.selected = 0;
    });
  }
  panes.forEach((pane, i) => {
    if (!(state.zoom[i] < pane.tree.name.length)) state.zoom[i] = 0;
  });
  if (before && before.zoom.join() !== state.zoom.join()) {
    panes.forEach((pane, i) => { if (before.zoom[i] !== state.zoom[i]) pane.selected = state.zoom[i]; });
  }
  if (searchField.value !== state.search && document.activeElement !== searchField) searchField.value = state.search;
  paletteField.value = state.palette;
  show();
  const isElsewhere = !before || changesTree(before, state) || before.inverted !== state.inverted ||
      before.zoom.join() !== state.zoom.join();
  if (isElsewhere) showRoot();
};

// ---- search -------------------------------------------------------------------------------------------------------

// Plain text is searched case-insensitively; /regex/ and /regex/i are regular expressions.
const testOf = (text) => {
  const form = /^\/([^]+)\/(i?)$/.exec(text);
  if (!form) {
    const wanted = text.toLowerCase();
    return (name) => name.text.toLowerCase().includes(wanted);
  }
  const wanted = new RegExp(form[1], form[2]);
  return (name) => wanted.test(name.text);
};
let searchFault = '';
const findMatches = () => {
  searchFault = '';
  let test = null;
  try {
    if (state.search !== '') test = testOf(state.search);
  } catch (fault) {
    searchFault = `${state.search}: ${fault.message}`;
  }
  const known = new Map();
  panes.forEach((pane) => {
    pane.isMatch = pane.tree.name.map((name, i) => {
      if (i === 0 || test === null) return false;
      if (!known.has(name)) known.set(name, test(name));
      return known.get(name);
    });
  });
};
// The total of the matches below `top`, drawn or not; a match within a match is counted once.
const matched = (pane, top) => {
  const {parent, total} = pane.tree, isCounted = new Uint8Array(total.length);
  let sum = 0, count = 0, hidden = 0;
  for (let i = top; i < total.length; i++) {
    if (i !== top && (parent[i] < top || !(isCounted[parent[i]] & 2))) continue;
    isCounted[i] = 2 | (i !== top ? isCounted[parent[i]] & 1 : 0);
    if (!pane.isMatch[i]) continue;
    count++;
    if (!pane.isShown[i]) hidden++;
    if (!(isCounted[i] & 1)) sum += total[i];
    isCounted[i] |= 1;
  }
  return {sum, count, hidden};
};

// ---- words --------------------------------------------------------------------------------------------------------

// Weights of folded text may be below 1.
const grouped = (value) => (Math.abs(value) < 100 ? Number(value.toPrecision(3)) : Math.round(value))
    .toLocaleString('en-US', {maximumFractionDigits: 20});
const amount = (pane, value) => `${grouped(value)} ${pane.unit}`.trim();
const share = (part, whole) => whole > 0 ? `${(100 * part / whole).toFixed(2)} %` : '0.00 %';
const signed = (value) => `${value < 0 ? '\u2212' : '+'}${Math.abs(value).toFixed(2)}`;
// Percentages of the graph of frames that are gone are of the total before.
const allOf = (pane) => pane.kind === 'gone' ? pane.before : pane.base.total[0];
const facts = (pane, i) => {
  const {name, parent, self, total} = pane.tree, top = state.zoom[pane.number], all = allOf(pane);
  const lines = [name[i].text];
  const where = [name[i].module, KINDS[name[i].kind], name[i].line].filter((word) => word).join(', ');
  if (where !== '') lines.push(where);
  const shares = [`${share(total[i], all)} of all`];
  if (top !== 0) shares.push(`${share(total[i], total[top])} of the view`);
  if (parent[i] > 0) shares.push(`${share(total[i], total[parent[i]])} of its caller`);
  lines.push(`total ${amount(pane, total[i])}: ${shares.join(', ')}`);
  lines.push(`self ${amount(pane, self[i])}: ${share(self[i], all)} of all`);
  if (isDifference) {
    const [was, is, noise] = changeOf(pane, i).map((part) => 100 * part);
    const points = `${signed(is - was)} points` + (setup.noise ? ` (noise ${noise.toFixed(2)})` : '');
    const cost = (weight) => `${+(weight / Number(setup.units)).toPrecision(4)} ${pane.unit}`.trim();
    lines.push(setup.per === undefined ? `${setup.was} ${was.toFixed(2)} %, ${setup.is} ${is.toFixed(2)} %: ${points}` :
        `per ${setup.per} ${cost(pane.tree.before[i])} before, ${cost(pane.tree.after[i])} after: ${points} of all before`);
  }
  return lines;
};
// In a difference: fractions of the total before and after, and their noise.
const changeOf = (pane, i) => [
  pane.before > 0 ? pane.tree.before[i] / pane.before : 0,
  pane.after > 0 ? pane.tree.after[i] / pane.after : 0,
  pane.tree.noise[i]
];

// What the search found in a graph.
const matchesText = (pane) => {
  const top = state.zoom[pane.number], inAll = matched(pane, 0), inView = matched(pane, top);
  let text = `${grouped(inAll.count)} frames match: ${share(inAll.sum, allOf(pane))} of all`;
  if (top !== 0) text += `, ${share(inView.sum, pane.tree.total[top])} of the view`;
  if (inView.hidden > 0) text += `; this counts ${grouped(inView.hidden)} that are too thin to be drawn`;
  if (pane.leftOut > 0) text += `; ${share(pane.leftOut, 1)} of all is in callees that are not in the file and not searched`;
  return text;
};
const tell = () => {
  const words = [];
  if (searchFault !== '') {
    words.push(`not a regular expression: ${searchFault}`);
  } else if (state.search !== '' && thin === 'awaited') {
    words.push('reading the frames that are too thin to be drawn');
  } else if (state.search !== '') {
    if (thin !== 'read') words.push(`frames that are too thin to be drawn cannot be read (${thin}) and are not counted`);
    if (panes.some((pane) => pane.unit !== panes[0].unit))
      panes.filter((pane) => pane.kind === 'all').forEach((pane) => words.push(`${pane.events}: ${matchesText(pane)}`));
    else
      words.push(matchesText(panes[current]));
  }
  const changes = [];
  if (state.focus !== '') changes.push(`only what ${state.focus} calls`);
  state.hide.forEach((name) => changes.push(`without ${name}`));
  state.modules.forEach((name) => changes.push(`${name} as one`));
  if (state.recursion) changes.push('recursion as one');
  if (changes.length > 0) words.push(changes.join('; '));
  matchText.textContent = words.join(' \u00b7 ');
};

// ---- drawing ------------------------------------------------------------------------------------------------------

const palettes = ['safe', 'warm', 'module', 'wait'].concat(isDifference ? ['change'] : []);
const classOf = (pane, i) => {
  const name = pane.tree.name[i];
  if (state.palette === 'module') return name.module === '' ? 'a0' : `m${hashOf(name.module) % 10}`;
  if (state.palette === 'change' && isDifference) {
    return changeClass(...changeOf(pane, i));
  }
  return `${name.kind}${'xaorw'.includes(name.kind) ? 0 : hashOf(name.text) % 3}`;
};
// The same as in flame_graph.cc.
const changeClass = (was, is, noise) => {
  const difference = is - was, size = Math.abs(difference);
  const step = size < Math.max(0.0005, noise) ? 0 : size < 0.002 ? 1 : size < 0.01 ? 2 : size < 0.05 ? 3 : 4;
  return step === 0 ? 'd0' : (difference > 0 ? 'p' : 'q') + step;
};
const hashes = new Map(), encoder = new TextEncoder();
const hashOf = (text) => {
  if (!hashes.has(text)) {
    let hash = 5;
    for (const byte of encoder.encode(text).subarray(0, 200)) hash = (hash * 31 + byte) % 1000003;
    hashes.set(text, hash);
  }
  return hashes.get(text);
};
const lettersOf = (text, width) => {
  let left = (width - 6) / LETTER, shown = '';
  if (left < 2) return '';
  for (const letter of text) {
    left -= letter.codePointAt(0) > 0x10ff ? 2 : 1;
    if (left < 0) return shown.length > 2 ? shown.slice(0, -2) + '\u2026' : '';
    shown += letter;
  }
  return shown;
};

// [class, text] of the legend.
const legendOf = () => {
  const {tree} = panes[0];
  if (state.palette === 'change') return [
    ['p4', setup.per === undefined ? `more of all than ${setup.was}` : `costs more per ${setup.per} than before`],
    ['p1', 'a little more'], ['d0', setup.noise ? 'as much, within the noise' : 'as much'], ['q1', 'a little less'],
    ['q4', 'less']
  ];
  if (state.palette !== 'module') {
    const isThere = new Set(panes.flatMap((pane) => pane.tree.name.map((name) => name.kind)));
    return Object.keys(KINDS).filter((kind) => KINDS[kind] !== '' && isThere.has(kind)).map((kind) => [kind + '0', KINDS[kind]]);
  }
  const weights = new Map();
  tree.name.forEach((name, i) => weights.set(name.module, (weights.get(name.module) || 0) + tree.own[i]));
  weights.delete('');
  return [...weights].sort((a, b) => b[1] - a[1]).slice(0, 8).map(([module]) => [`m${hashOf(module) % 10}`, module]);
};
const drawLegend = () => {
  legendText.replaceChildren(...legendOf().flatMap(([look, words]) => {
    const box = svgElement('svg', {width: 12, height: 12});
    box.append(svgElement('rect', {width: 12, height: 12, class: look}));
    return [html('span', {}, box, ' ' + words), ' '];
  }));
};

let width = 1200, bottom = 0;
// If the graph is higher than the window, scrolls to its root.
const showRoot = () => {
  const pane = panes[current];
  view.scrollTo(0, state.inverted ? 0 : Math.max(pane.bottom + 44 - view.innerHeight, 0));
  placeFoot();
};
const draw = () => {
  // Width without the scroll bar.
  width = Math.max(Math.min(view.innerWidth, document.documentElement.clientWidth || view.innerWidth), 200);
  svg.setAttribute('class', 'live ' + state.palette);
  drawLegend();
  svg.setAttribute('width', width);
  head.setAttribute('width', width);
  let y = headBox.getBoundingClientRect().height + GAP;
  head.setAttribute('height', y);
  for (const pane of panes) y = drawPane(pane, y);
  bottom = y + 44;
  svg.setAttribute('height', Math.max(bottom, view.innerHeight));
  placeFoot();
};

// Draws the state, below its words: more lines of these move the graphs.
const show = () => {
  const height = () => headBox.getBoundingClientRect().height;
  findMatches();
  draw();
  const before = height();
  tell();
  if (height() !== before) draw();
};

const drawPane = (pane, y) => {
  const {tree, rects, isMatch} = pane, {name, parent, total} = tree, count = name.length;
  const top = state.zoom[pane.number], wide = width - 2 * GAP, scale = total[top] > 0 ? wide / total[top] : 0;
  pane.x = new Float64Array(count);
  pane.w = new Float64Array(count);
  pane.row = new Int32Array(count);
  const next = new Float64Array(count), isUp = new Uint8Array(count), isShown = new Uint8Array(count);
  for (let i = top; i >= 0; i = parent[i]) isUp[i] = 1;
  let rows = 1, labels = 0, shown = 0;
  for (let i = 0; i < count; i++) {
    const caller = parent[i];
    pane.row[i] = caller < 0 ? 0 : pane.row[caller] + 1;
    if (isUp[i]) {
      isShown[i] = 1;
      pane.x[i] = next[i] = GAP;
      pane.w[i] = wide;
    } else if (isShown[caller] && (!isUp[caller] || caller === top)) {
      const w = total[i] * scale;
      pane.x[i] = next[i] = next[caller];
      pane.w[i] = w;
      next[caller] += w;
      isShown[i] = w >= LEAST ? 1 : 0;
    }
    shown += isShown[i];
  }
  if (shown > MOST) {  // a frame is as wide as its callees at least, so none stays without its caller
    const least = pane.w.filter((w, i) => isShown[i]).sort()[shown - MOST];
    for (let i = 0; i < count; i++) isShown[i] = isShown[i] && pane.w[i] >= least ? 1 : 0;
  }
  for (let i = 0; i < count; i++)
    if (isShown[i] && pane.row[i] >= rows) rows = pane.row[i] + 1;
  const base = y + (pane.heading ? 22 : 0);
  pane.yOf = (row) => (state.inverted ? row : rows - 1 - row) * ROW;
  pane.group.setAttribute('transform', `translate(0 ${base})`);
  if (pane.heading) pane.heading.setAttribute('y', -7);
  let used = 0;
  for (let i = 0; i < count; i++) {
    if (!isShown[i]) continue;
    if (used === rects.length) rects.push(pane.frames.appendChild(svgElement('rect', {height: BOX})));
    const rect = rects[used++];
    rect.frame = i;
    rect.pane = pane.number;
    rect.removeAttribute('display');
    rect.setAttribute('x', pane.x[i].toFixed(1));
    rect.setAttribute('y', pane.yOf(pane.row[i]));
    rect.setAttribute('width', pane.w[i].toFixed(1));
    let look = classOf(pane, i);
    if (isMatch[i]) look += ' match';
    if (pane.isMarked.has(name[i])) look += ' marked';
    if (isUp[i] && i !== top) look += ' up';
    rect.setAttribute('class', look);
    const text = pane.w[i] > 20 ? lettersOf(name[i].text, pane.w[i]) : '';
    if (text === '') continue;
    if (labels === pane.texts.length) pane.texts.push(pane.labels.appendChild(svgElement('text')));
    const label = pane.texts[labels++];
    label.removeAttribute('display');
    label.setAttribute('x', (pane.x[i] + 3).toFixed(1));
    label.setAttribute('y', pane.yOf(pane.row[i]) + 12);
    label.setAttribute('class', isMatch[i] ? 'match' : name[i].kind === 'x' && state.palette !== 'module' ? 'x' : '');
    label.textContent = text;
  }
  for (let i = used; i < rects.length; i++) rects[i].setAttribute('display', 'none');
  for (let i = labels; i < pane.texts.length; i++) pane.texts[i].setAttribute('display', 'none');
  pane.isShown = isShown;
  placeCursor(pane);
  pane.bottom = base + rows * ROW + GAP;
  return pane.bottom;
};

const placeCursor = (pane) => {
  const i = pane.selected;
  if (pane.number !== current || !pane.isShown[i] || !hasCursor) return pane.cursor.setAttribute('display', 'none');
  pane.cursor.removeAttribute('display');
  pane.cursor.setAttribute('x', pane.x[i]);
  pane.cursor.setAttribute('y', pane.yOf(pane.row[i]));
  pane.cursor.setAttribute('width', Math.max(pane.w[i], 2));
};

// ---- head and foot of the picture -------------------------------------------------------------------------------------------

const {html, svgElement, foreign, helpOf, addTip, showTip: showTipOf, hideTip} = pictureOf(svg);
const button = (text, title, action) => {
  const made = html('button', {type: 'button', title}, text);
  made.addEventListener('click', (event) => {
    event.stopPropagation();  // a click outside of the help closes it
    action();
  });
  return made;
};

const searchField = html('input', {
  type: 'search', class: 'search', placeholder: 'search: text or /regex/', 'aria-label': 'search for text or /regex/',
  autocomplete: 'off', spellcheck: 'false'
});
const paletteField = html('select', {class: 'palette', 'aria-label': 'colours'});
const PALETTES = {
  safe: 'kind of code', warm: 'kind of code, warm', module: 'module', wait: 'waits', change: setup.per === undefined ? 'change of share' : `change per ${setup.per}`
};
palettes.forEach((name) => paletteField.append(html('option', {value: name}, PALETTES[name])));
const legendText = html('p', {class: 'legend'});
const matchText = html('div', {class: 'found', role: 'status', 'aria-live': 'polite'});
const staticHead = svg.querySelector('g.head');
const headBox = html('div', {class: 'headbox'});
const fill = () => {
  const textsOf = (name) => [...staticHead.querySelectorAll('text.' + name)].map((text) => text.textContent);
  headBox.append(html('h1', {}, svg.querySelector('title').textContent));
  textsOf('note').forEach((text) => headBox.append(html('p', {}, text)));
  headBox.append(legendText, html('p', {class: 'tools'},
      searchField, button('Reset', 'everything as at first (0)', () => reset()),
      button('Focus', 'only what the selected function calls (f)', () => act.f()),
      button('Hide', 'without the selected function (h)', () => act.h()),
      button('Recursion', 'recursive calls as one frame (r)', () => act.r()),
      button('Module', 'functions of the selected module that call each other as one frame (m)', () => act.m()),
      button('Flip', 'callers above or below (i)', () => act.i()), paletteField,
      button('?', 'keys (?)', () => act['?']())), matchText);
};

const panes = [...svg.querySelectorAll('g.pane')].map((group, index) => {
  const frames = group.querySelector('g.frames'), rects = [...frames.children], base = readTree(rects);
  const isMarked = new Set();
  rects.forEach((rect, i) => {
    if (rect.getAttribute('class').split(' ').includes('marked')) isMarked.add(base.name[i]);
    rect.textContent = '';  // removes its <title>: the tool tip has more
  });
  const labels = group.querySelector('g.labels');
  labels.textContent = '';
  const cursor = svgElement('rect', {class: 'cursor', height: BOX});
  group.append(cursor);
  const {kind, events, unit, before, after, leftOut} = {...setup, leftOut: 0, ...group.dataset};
  return {
    number: index, kind, events, unit, before: Number(before), after: Number(after), leftOut: Number(leftOut), group, frames,
    rects, base, tree: base, labels, texts: [], cursor, isMarked, heading: group.querySelector('text.heading'),
    selected: 0, isMatch: [], isShown: []
  };
});
// Of the frames that are too thin to be drawn: 'awaited', 'read' (or there are none), or why they cannot be read.
let thin = document.querySelector('script.data') === null ? 'read' : 'awaited';
let current = 0, hasCursor = false;

const head = foreign('head', headBox);
addTip();
const footBox = html('div', {class: 'foot', id: 'foot', role: 'status', 'aria-live': 'polite'});
const foot = foreign('feet', footBox);
const KEYS = [
  ['arrows', 'to the caller, to what it calls, to the frames beside it'], ['Enter, click', 'zoom in'],
  ['Esc', 'one step out: help, search, zoom'], ['0', 'everything as at first'], ['/', 'search'],
  ['n, N', 'next and previous match'], ['f', 'only what the selected function calls'],
  ['h, Alt+click', 'without the selected function'], ['r', 'recursive calls as one frame'],
  ['m', 'the selected module as one frame'], ['i', 'callers above or below'], ['p', 'other colours'],
  ['u, back', 'undo'], ['?', 'this list']
];
const helpBox = helpOf(KEYS);
const help = foreign('helps', helpBox);

const placeFoot = () => {
  // The head stays visible when scrolled, unless it takes more than 40 % of the window.
  const isLow = headBox.getBoundingClientRect().height < 0.4 * view.innerHeight;
  head.setAttribute('x', isLow ? view.scrollX : 0);
  head.setAttribute('y', isLow ? view.scrollY : 0);
  foot.setAttribute('width', width);
  foot.setAttribute('height', 400);
  const tall = footBox.getBoundingClientRect().height;
  foot.setAttribute('height', tall);
  foot.setAttribute('x', view.scrollX);
  foot.setAttribute('y', view.scrollY + view.innerHeight - tall);
  help.setAttribute('x', view.scrollX);
  help.setAttribute('y', view.scrollY);
  help.setAttribute('width', helpBox.hidden ? 0 : width);
  help.setAttribute('height', helpBox.hidden ? 0 : view.innerHeight);
};
const say = (pane, i) => {
  footBox.textContent = facts(pane, i).join(' \u00b7 ');
  placeFoot();
};
const showTip = (event) => {
  const rect = event.target;
  if (rect.frame === undefined || event.pointerType === 'touch') return hideTip();
  showTipOf(event, facts(panes[rect.pane], rect.frame), width, 420);
};

const select = (pane, i) => {
  const before = panes[current];
  current = pane.number;
  pane.selected = i;
  hasCursor = true;
  placeCursor(before);
  placeCursor(pane);
  say(pane, i);
  if (!pane.isShown[i]) return;
  // Scrolls to the frame.
  const box = pane.cursor.getBoundingClientRect(), below = view.innerHeight - 50;
  if (box.top < headBox.getBoundingClientRect().bottom || box.bottom > below) view.scrollBy(0, box.top - view.innerHeight / 2);
};
const zoomTo = (pane, i) => {
  const zoom = [...state.zoom];
  zoom[pane.number] = i;
  go({zoom});
};
const reset = () => {
  searchField.value = '';
  hasCursor = false;
  footBox.textContent = '';
  go({...initial(), inverted: state.inverted, palette: state.palette});
};
const toMatch = (step) => {
  const pane = panes[current], count = pane.tree.name.length;
  for (let tried = 1; tried <= count; tried++) {
    const i = ((pane.selected + step * tried) % count + count) % count;
    if (pane.isMatch[i] && pane.isShown[i]) return select(pane, i);
  }
};

// The next visible frame in the direction of an arrow key.
const move = (key) => {
  const pane = panes[current], {parent} = pane.tree, i = pane.selected;
  if (!pane.isShown[i] || !hasCursor) return select(pane, state.zoom[current]);
  const toCaller = key === (state.inverted ? 'ArrowUp' : 'ArrowDown');
  if (key === 'ArrowUp' || key === 'ArrowDown') {
    if (toCaller) return parent[i] < 0 ? undefined : select(pane, parent[i]);
    let widest = -1;
    for (let child = i + 1; child < parent.length; child++) {
      const isBetter = parent[child] === i && pane.isShown[child] && (widest < 0 || pane.w[child] > pane.w[widest]);
      if (isBetter) widest = child;
    }
    return widest < 0 ? undefined : select(pane, widest);
  }
  // The nearest frame in the same row on that side.
  let nearest = -1;
  for (let other = 0; other < parent.length; other++) {
    if (other === i || !pane.isShown[other] || pane.row[other] !== pane.row[i]) continue;
    const isThere = key === 'ArrowRight' ? pane.x[other] > pane.x[i] : pane.x[other] < pane.x[i];
    const isNearer = nearest < 0 || Math.abs(pane.x[other] - pane.x[i]) < Math.abs(pane.x[nearest] - pane.x[i]);
    if (isThere && isNearer) nearest = other;
  }
  if (nearest >= 0) select(pane, nearest);
};

const selectedName = () => panes[current].tree.name[panes[current].selected];
const isRoot = () => panes[current].selected === 0;
const nothingZoomed = () => ({zoom: panes.map(() => 0)});
const act = {
  f: () => { if (!isRoot()) go({...nothingZoomed(), focus: selectedName().text}); },
  h: () => { if (!isRoot()) go({...nothingZoomed(), hide: [...new Set([...state.hide, selectedName().text])]}); },
  r: () => go({...nothingZoomed(), recursion: !state.recursion}),
  m: () => {
    const {module} = selectedName();
    if (module === '') return;
    const others = state.modules.filter((name) => name !== module);
    go({...nothingZoomed(), modules: others.length < state.modules.length ? others : [...others, module]});
  },
  i: () => go({inverted: !state.inverted}),
  p: () => go({palette: palettes[(palettes.indexOf(state.palette) + 1) % palettes.length]}),
  u: () => history.back(),
  n: () => toMatch(1),
  N: () => toMatch(-1),
  0: () => reset(),
  '/': () => searchField.focus(),
  '?': () => {
    helpBox.hidden = !helpBox.hidden;
    placeFoot();
  },
  Enter: () => zoomTo(panes[current], panes[current].selected),
  Escape: () => {
    if (!helpBox.hidden) return act['?']();
    if (state.search !== '') {
      searchField.value = '';
      return go({search: ''});
    }
    if (state.zoom[current] !== 0) zoomTo(panes[current], Math.max(panes[current].tree.parent[state.zoom[current]], 0));
  }
};

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target === searchField;
  if (isTyping || event.target === paletteField) {
    if (event.key === 'Escape') event.target.blur();
    if (isTyping && event.key === 'Enter') {
      go({search: searchField.value});
      searchField.blur();
    }
    if (event.key !== 'Escape') return;
  }
  if (event.key.startsWith('Arrow')) {
    move(event.key);
  } else if (event.key === 'Enter' && event.target instanceof view.HTMLButtonElement) {
    return;
  } else if (Object.hasOwn(act, event.key)) {
    act[event.key]();
  } else {
    return;
  }
  event.preventDefault();
});
// Matches are shown while typing. Enter, or leaving the field, adds the search to the history.
searchField.addEventListener('input', () => {
  state.search = searchField.value;
  show();
});
searchField.addEventListener('change', () => go({search: searchField.value}));
paletteField.addEventListener('change', () => go({palette: paletteField.value}));
svg.addEventListener('click', (event) => {
  const rect = event.target;
  hideTip();  // another frame will be at the pointer
  if (!helpBox.hidden && !helpBox.contains(rect)) act['?']();
  if (rect.frame === undefined) return;
  const pane = panes[rect.pane];
  select(pane, rect.frame);
  event.altKey ? act.h() : zoomTo(pane, rect.frame);
});
svg.addEventListener('pointermove', showTip);
svg.addEventListener('pointerleave', showTip);
view.addEventListener('scroll', placeFoot);
view.addEventListener('resize', () => draw());
view.addEventListener('hashchange', () => apply());
// Firefox has the heights of texts only after load.
view.addEventListener('load', () => {
  draw();
  showRoot();
});

fill();
staticHead.remove();
svg.removeAttribute('viewBox');  // one unit is one pixel
svg.setAttribute('tabindex', '0');
svg.setAttribute('aria-label', `${svg.querySelector('title').textContent}; arrow keys walk through the frames, ? lists the keys`);
apply();
if (thin === 'awaited') {
  readThin().then(() => { thin = 'read'; }, (fault) => { thin = fault.message; }).then(() => apply(true));
}
})();
