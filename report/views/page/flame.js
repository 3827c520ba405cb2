// Flame graphs of the selection: of its stacks from callers to callees, or from the leaves up, or of the callers and the
// callees of one function. Functions can be hidden, recursion and modules joined, by the keys that pictures have too.
import {button, copyText, element} from '../../browser/dom.js';
import {changeFact, frameFacts, gapText} from '../../browser/flame_graph.js';
import {changeClass, changeLegend, frameClass, KINDS, kindLegend, moduleLegend, moduleRanks} from '../../browser/frame_looks.js';
import {amount} from '../../browser/words.js';

import {colour, isDark} from './canvas.js';
import {makeFlameCanvas} from './flame_canvas.js';
import {select} from './model.js';
import {makeStacks} from './stacks.js';
import {initialState, PALETTES, palettesOf} from './state.js';

const WALK = 'Arrow keys walk through the frames';

export const makeFlame = (app) => {
  const {model} = app, {tree, frames} = model, stacks = makeStacks(model), palettes = palettesOf(model);
  const legend = element('p', {class: 'legend'});
  const status = element('p', {class: 'status', role: 'status', 'aria-live': 'polite'});
  const without = element('p', {class: 'without'});
  let fills = new Map(), drawn = {key: '', selection: null, trees: null};

  // The sums of both sides of a comparison, the one that widths show first.
  const sides = () => {
    const {selection, state} = app;
    if (!selection.before) return [selection];
    return state.side === 'before' ? [selection.before, selection] : [selection, selection.before];
  };
  const nameOf = (frame) => ({
    text: frames.name(frame), module: frames.module(frame), line: frames.line(frame), kind: frames.kind(frame)
  });
  const change = (of, i) => {
    const shares = sides().map((side, which) => (side.all > 0 ? of.total(i, which) / side.all : 0));
    return app.state.side === 'before' ? shares : shares.reverse();
  };
  const colourOf = (look) => {
    const [light, dark] = model.head.fills[`.${app.state.palette} .${look}`] || model.head.fills[`.${look}`];
    return isDark() ? dark : light;
  };
  const ownOfModules = ({self}) => {
    const weights = new Map();
    self.forEach((own, i) => {
      if (own > 0) weights.set(frames.module(i), (weights.get(frames.module(i)) || 0) + own);
    });
    return weights;
  };
  // By all samples that a page opens with, so that colours stay when others are selected.
  let ranked = null;
  const ranks = () => ranked ??= moduleRanks(ownOfModules(select(model, initialState(model))));
  const fillOf = (graph, i) => {
    if (app.state.palette === 'change') return colourOf(changeClass(...change(graph.tree, i)));
    const frame = graph.tree.frame(i);
    if (!fills.has(frame)) fills.set(frame, colourOf(frameClass(app.state.palette, nameOf(frame), ranks())));
    return fills.get(frame);
  };
  const factsOf = ({tree: of, top}, i) => {
    const name = nameOf(of.frame(i));
    const lines = frameFacts(of, i, {
      name,
      kind: KINDS[name.kind],
      self: of.self?.(i),
      top,
      all: sides()[0].all,
      whole: 'the selection',
      shown: (weight) => amount(weight, app.unit())
    });
    return app.selection.before ? [...lines, changeFact(...change(of, i))] : lines;
  };

  const whole = {zoom: tree.root, steps: 0};
  const zoom = ({tree: of}, i) => {
    const [node, steps] = of.placeOf(i);
    const isRoot = i === of.root || app.state.code === '';
    app.go({zoom: node, steps, code: isRoot ? app.state.code : frames.name(of.frame(i))});
  };
  const lookAround = (frame) => app.go({around: frames.name(frame), ...whole});
  let current;
  const looks = {
    fillOf,
    factsOf,
    gapOf: (gap) => gapText(gap, sides()[0].all),
    chosen: (graph, i) => {
      current = graph;
      status.textContent = factsOf(graph, i).join(' · ');
    }
  };
  const main = makeFlameCanvas(app, {
    ...looks,
    label: `Flame graph of the selection. ${WALK}, Enter zooms in, Escape zooms out; the table beside it has the same functions.`,
    entered: (graph, i, isAlt) => (isAlt ? act.h() : zoom(graph, i)),
    left: (graph) => {
      if (graph.top !== graph.tree.root) zoom(graph, graph.tree.parent(graph.top));
    }
  });
  const around = [['Callers', true], ['Callees', false]].map(([words, isUpward]) => makeFlameCanvas(app, {
    ...looks,
    isUpward,
    label: `${words} of the function. ${WALK}, Enter shows callers and callees of another one, Escape all stacks.`,
    entered: (graph, i, isAlt) => (isAlt ? act.h() : lookAround(graph.tree.frame(i))),
    left: () => app.go({around: ''})
  }));
  current = main;

  // What is done to the chosen frame.
  const withChosen = (does, otherwise = () => false) => () => {
    const {tree: of, chosen, top, layout} = current;
    if (layout === null) return false;
    const i = layout.places.has(chosen) ? chosen : top;
    if (i !== of.root || app.state.around !== '')
      does(of.frame(i));
    else if (otherwise() === false)
      status.textContent = 'Choose a frame first: by a click or with the arrow keys.';
  };
  const toggled = (list, one) => (list.includes(one) ? list.filter((other) => other !== one) : [...list, one]);
  const act = {
    f: withChosen((frame) => app.go({focus: frames.name(frame), around: '', ...whole})),
    c: withChosen(lookAround, () => app.state.focus !== '' && app.go({around: app.state.focus, ...whole})),
    h: withChosen((frame) => {
      const name = frames.name(frame), {hide, around: of} = app.state;
      app.go({hide: [...new Set([...hide, name])], around: of === name ? '' : of});
    }),
    m: withChosen((frame) => {
      const module = frames.module(frame);
      if (module === '')
        status.textContent = `${frames.name(frame)} is of no module.`;
      else
        app.go({modules: toggled(app.state.modules, module)});
    }),
    y: withChosen((frame) => {
      const name = element('code', {}, frames.name(frame)), said = element('span');
      status.replaceChildren(name, ' ', said);
      copyText(name, (words) => { said.textContent = words; });
    }),
    r: () => app.go({recursion: !app.state.recursion}),
    b: () => app.go({graph: app.state.graph === 'callers' ? 'callees' : 'callers', around: '', ...whole}),
    ...(model.code && {s: withChosen((frame) => app.go({code: frames.name(frame)}), () => app.state.focus !== '' && app.go({code: app.state.focus}))}),
    p: () => app.go({palette: palettes[(palettes.indexOf(app.state.palette) + 1) % palettes.length]})
  };

  const choice = (label, names, key) => element(
      'select', {'aria-label': label, onchange: (event) => app.go({[key]: event.target.value})},
      ...Object.entries(names).map(([value, words]) => element('option', {value}, words)));
  const side = choice('what frames are as wide as', {after: 'as wide as after', before: 'as wide as before'}, 'side');
  const palette = choice('colours', Object.fromEntries(palettes.map((name) => [name, PALETTES[name]])), 'palette');
  const pressed = {
    b: button('Bottom-up', 'where samples were taken, and below that the callers (b)', act.b),
    r: button('Recursion', 'direct recursion as one frame (r)', act.r)
  };
  const chips = element('span', {class: 'changes'});
  const tools = element(
      'p', {class: 'tools'}, ...(model.base ? [side] : []), pressed.b, button('Callers and callees', 'of the chosen function (c)', act.c),
      button('Hide', 'without the chosen function (h, Alt+click)', act.h), pressed.r,
      ...(model.code ? [button('Code', 'source and instructions of the chosen function (s)', act.s)] : []),
      button('Module', 'functions of the chosen module that call each other as one frame (m)', act.m), palette, chips);
  const drawTools = () => {
    const {state} = app, chip = (words, changes) =>
        button(`${words} ✕`, 'undo this', () => app.go(changes), {class: 'chip'});
    side.value = state.side;
    palette.value = state.palette;
    pressed.b.setAttribute('aria-pressed', String(state.graph === 'callers'));
    pressed.r.setAttribute('aria-pressed', String(state.recursion));
    chips.replaceChildren(
        ...(state.around === '' ? [] : [chip(`callers and callees of ${state.around}`, {around: ''})]),
        ...state.hide.map((name) => chip(`without ${name}`, {hide: toggled(state.hide, name)})),
        ...state.modules.map((name) => chip(`${name} as one`, {modules: toggled(state.modules, name)})));
  };

  const kinds = new Set(Array.from({length: frames.count}, (_, i) => frames.kind(i)));
  const drawLegend = () => {
    const entries = app.state.palette === 'change' ? changeLegend('more', 'as much') :
        app.state.palette === 'module'             ? moduleLegend(ownOfModules(app.selection), ranks()) :
                                                     kindLegend(app.state.modules.length > 0 ? new Set([...kinds, 'c']) : kinds);
    legend.replaceChildren(...entries.map(([look, words]) => {
      const mark = element('span', {class: 'mark'});
      mark.style.background = colourOf(look);
      return element('span', {}, mark, words);
    }));
  };

  // Made again only if they are others.
  const trees = () => {
    const {state, selection} = app;
    const key = JSON.stringify([state.graph, state.around, state.hide, state.modules, state.recursion, state.side]);
    if (drawn.key !== key || drawn.selection !== selection) drawn = {key, selection, trees: stacks(state, sides())};
    return drawn.trees;
  };
  const view = element(
      'div', {class: 'flameview'}, tools, without, legend, main.element, ...around.map((graph) => graph.element), status);
  return {
    element: view,
    keys: act,
    toMatch: (step) => (app.state.around === '' ? main : current).toMatch(step),
    draw: () => {
      const {state} = app, isOther = drawn.selection !== app.selection, event = model.events[state.event], none = 'No sample of the selection has a weight.';
      without.textContent =
          event.hasStacks ? '' : `${event.name} was recorded without stacks: each sample has one frame, where it was taken.`;
      fills = new Map();
      drawTools();
      drawLegend();
      const hasFocus = document.activeElement === current.canvas;
      const {graph, callers, callees} = trees(), isAround = state.around !== '';
      view.classList.toggle('around', isAround);
      main.element.hidden = isAround;
      around.forEach((one) => { one.element.hidden = !isAround; });
      if (isAround) {
        if (current === main) current = around[1];
        const words = callees.total(0) > 0 ? '' : `No sample of the selection has ${state.around} in its stack.`;
        around.forEach((one, which) => one.draw([callers, callees][which], 0, words));
      } else {
        current = main;
        main.draw(graph, graph.nodeAt(state.zoom, state.steps), sides()[0].all > 0 ? '' : none);
      }
      if (hasFocus) current.canvas.focus({preventScroll: true});
      if (current.chosen < 0 || isOther) status.textContent = '';
    }
  };
};
