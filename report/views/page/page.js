// The page: its parts around one state, which selects the samples that all of them show.
import {button, element} from '../../browser/dom.js';
import {keyList, onKeys} from '../../browser/keys.js';
import {openData} from '../../browser/packed_data.js';
import {makeSearchField, matcher} from '../../browser/search.js';
import {amount, counted, fixed, matching, share} from '../../browser/words.js';

import {makeAnswer} from './answer.js';
import {forgetColours} from './canvas.js';
import {makeCode} from './code.js';
import {makeEvents} from './events.js';
import {makeFlame} from './flame.js';
import {makeFunctions} from './functions.js';
import {folded, makeModel, nodesWith, select} from './model.js';
import {makeOverview} from './overview.js';
import {addressOf, cleared, hasSelection, ofEvent, readState, selectsOthers, TABS, unchanged} from './state.js';
import {makeTimeline} from './timeline.js';
import {makeValues} from './values.js';

const TAB_NAMES = {
  stacks: 'Stacks',
  values: 'Values',
  events: 'Samples'
};
const KEYS = [
  ['/', 'search: text in any case, or /regex/ (/regex/i)'], ['0', 'select everything'],
  ['1, 2, 3', 'stacks, values, samples'], ['drag', 'select a time in the timeline, a box in the heat map'],
  ['arrows', 'walk: through frames, times, cells, samples'],
  ['Shift + arrows', 'select a time in the timeline'],
  ['w', 'in states of threads: to the waker of the chosen wait'],
  ['. and ,', 'next and previous wait of the thread; if a finding is chosen, only its waits'],
  ['Enter', 'zoom into a frame or a time, select a cell'], ['Escape', 'one step out'],
  ['f', 'only stacks with the chosen function'], ['c', 'callers and callees of the chosen function'],
  ['b', 'bottom-up: below each function its callers'], ['h, Alt+click', 'without the chosen function'],
  ['s', 'source and instructions of the chosen function'], ['y', 'copy the name of the chosen function'], ['r', 'direct recursion as one frame'], ['m', 'the chosen module as one frame'], ['p', 'other colours'], ['n, N', 'next and previous match'], ['back', 'undo'],
  ['?', 'this list']
];

const start = async () => {
  const model = makeModel(await openData());
  const {capture} = model;
  const app = {model, state: null, selection: null, matches: {frames: null, sample: null, fault: ''}};
  app.weightUnit = () => (app.state.finding !== null ? 'ns' : model.events[app.state.event].unit);
  app.unit = () => (app.state.by === 'samples' ? 'samples' : app.weightUnit());
  // What times are counted from, and a time with as many digits as `step` ns needs: usually half a pixel of the timeline.
  app.zero = () => (app.state.clock === 'recorded' ? model.start : 0n);
  app.when = (offset, step = (app.state.viewTo - app.state.viewFrom) / 2000) => {
    const digits = Math.min(Math.max(9 - Math.floor(Math.log10(Math.max(step, 1))), 0), 9);
    const time = app.zero() + BigInt(Math.round(offset));
    return `${time < 0n ? '−' : ''}${fixed(time < 0n ? -time : time, 1e9, digits)} s`;
  };
  // A step that "back" undoes: all of them go through the address.
  app.go = (changes) => {
    const address = addressOf(model, {...app.state, ...changes});
    if (address !== (location.hash || '#')) location.hash = address;
  };

  const title = model.head.title !== undefined ? model.text(model.head.title) :
      capture.command !== undefined            ? model.text(capture.command) :
                                                 'A capture of tacho';
  document.title = `${title.slice(0, 100)} - tacho`;

  const search = makeSearchField((text) => app.go({search: text}), {id: 'search', oninput: () => typed(search.value)});
  const events = element(
      'select', {
        id: 'event',
        'aria-label': 'event',
        onchange: () => app.go(ofEvent(Number(events.value)))
      },
      ...model.events.filter((event) => event.samples > 0)
          .map((event) => element('option', {value: event.number}, event.name)));
  const weights = element(
      'select', {id: 'by', 'aria-label': 'weight', onchange: () => app.go({by: weights.value})},
      element('option', {value: 'weight'}, ''), element('option', {value: 'samples'}, 'samples'));
  const chips = element('p', {class: 'chips', id: 'selection'});
  const found = element('p', {class: 'status', id: 'found', role: 'status', 'aria-live': 'polite'});
  const help = element(
      'dialog', {id: 'help', 'aria-label': 'keys'},
      keyList(KEYS.filter(([key]) => key !== 's' || model.code)), button('Close', 'close (Escape)', () => help.close()));
  const foldedText = element('textarea', {readonly: true, 'aria-label': 'folded stacks', rows: 20});
  const foldedBox = element(
      'dialog', {id: 'folded', 'aria-label': 'folded stacks of the selection'}, foldedText,
      button('Copy', 'copy the text', (event) => {
        foldedText.select();
        event.target.textContent = document.execCommand('copy') ? 'Copied' : 'Press Ctrl+C';
      }),
      ' ', button('Close', 'close (Escape)', () => foldedBox.close()));
  const showFolded = () => {
    foldedText.value = folded(model, app.selection);
    foldedBox.showModal();
  };

  const flame = makeFlame(app), functions = makeFunctions(app);
  const views = {
    stacks: [flame, functions, ...(model.code ? [makeCode(app, functions.element)] : [])],
    values: [makeValues(app)],
    events: [makeEvents(app)]
  };
  const overview = makeOverview(app), timeline = app.timeline = makeTimeline(app),
        answer = model.answer === null ? null : makeAnswer(app);
  const tabs = {}, panels = {};
  for (const name of TABS) {
    panels[name] = element(
        'div', {
          role: 'tabpanel',
          id: `panel-${name}`,
          class: `panel ${name}${model.base ? ' compared' : ''}`,
          'aria-labelledby': `tab-${name}`
        },
        ...views[name].map((view) => view.element));
    tabs[name] = element(
        'button', {
          type: 'button',
          role: 'tab',
          id: `tab-${name}`,
          'aria-controls': `panel-${name}`,
          onclick: () => app.go({tab: name})
        },
        TAB_NAMES[name]);
  }
  const tabList = element(
      'div', {
        role: 'tablist',
        'aria-label': 'views of the selection',
        onkeydown: (event) => {
          const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
          if (step === undefined) return;
          const next = TABS[(TABS.indexOf(app.state.tab) + step + TABS.length) % TABS.length];
          tabs[next].focus();
          app.go({tab: next});
        }
      },
      ...TABS.map((name) => tabs[name]));

  const reset = () => {
    search.value = '';
    app.go({...cleared(), ...unchanged(model), search: '', viewFrom: 0, viewTo: model.span});
  };
  document.getElementById('page').replaceChildren(
      element(
          'header', {}, element('h1', {title}, title),
          element(
              'p', {class: 'tools'}, search, events, weights, button('Reset', 'select everything (0)', reset),
              button(
                  'Folded text', 'the stacks of the selection as text, as tacho folded prints them',
                  showFolded),
              button('?', 'keys (?)', () => help.showModal())),
          found),
      ...(answer === null ? [] : [answer.element]), overview.element, timeline.element,
      element('div', {class: 'chosenbar'}, tabList, chips), ...TABS.map((name) => panels[name]), help, foldedBox);

  // What the search finds: frames, and of the list the samples with a match in names, stack or
  // payload.
  const findMatches = () => {
    app.matches = {frames: null, sample: null, fault: ''};
    if (app.state.search === '') return;
    const {test, fault} = matcher(app.state.search), {frames, tree, samples, ordinal} = model;
    app.matches.fault = fault;
    const isFrame = new Uint8Array(frames.count), all = tree.frame[tree.root];
    for (let i = 0; i < frames.count; i++) isFrame[i] = i !== all && test(frames.name(i)) ? 1 : 0;
    app.matches.frames = isFrame;
    const isNode = nodesWith(model, (i) => isFrame[i] === 1), knownTexts = new Map();
    app.matches.nodes = isNode;
    const isText = (number) => {
      if (!knownTexts.has(number)) knownTexts.set(number, test(model.text(number)));
      return knownTexts.get(number);
    };
    app.matches.sample = (i) => isNode[samples.node[i]] === 1 ||
        model.events[samples.event[i]].fields.some(
            (field) => field.isText && isText(field.values[ordinal[i]]));
  };
  const showMatches = () => {
    const {matches, selection} = app;
    if (matches.fault !== '')
      found.textContent = `not a regular expression: ${matches.fault}`;
    else if (matches.frames === null)
      found.textContent = '';
    else {
      let sum = 0, count = 0;
      for (let i = 0; i < selection.own.length; i++)
        if (matches.nodes[i]) sum += selection.own[i];
      for (let i = 0; i < matches.frames.length; i++)
        if (matches.frames[i] && selection.total[i] > 0) count++;
      found.textContent = `${matching(count, 'function')}: ${share(sum, selection.all)} of the selection`;
    }
  };
  const showSelection = () => {
    const {state} = app, made = [];
    const chip = (words, changes) => made.push(
        button(`${words} ✕`, 'take this out of the selection', () => app.go(changes), {class: 'chip'}));
    if (state.finding !== null) chip(model.answer.parts[state.finding].title, {finding: null});
    if (state.from !== null)
      chip(`${app.when(state.from)} to ${app.when(state.to)}`, {from: null, to: null});
    state.cpus.forEach(
        (cpu) => chip(
            cpu < 0 ? 'CPU not recorded' : `CPU ${cpu}`, {cpus: state.cpus.filter((one) => one !== cpu)}));
    state.pids.forEach((pid) => chip(`process ${pid}`, {pids: state.pids.filter((one) => one !== pid)}));
    state.tids.forEach((tid) => chip(`thread ${tid}`, {tids: state.tids.filter((one) => one !== tid)}));
    state.groups.forEach(
        (group) => chip(`container ${group}`, {groups: state.groups.filter((one) => one !== group)}));
    if (state.low !== null) {
      const unit = state.field === '' ? 'ns' : model.events[state.event].fields.find((one) => one.name === state.field)?.unit || '';
      chip(
          `${state.field || 'time within its second'} ${amount(state.low, unit)} to ${amount(state.high, unit)}`,
          {low: null, high: null});
    }
    if (state.focus !== '') chip(`stacks with ${state.focus}`, {focus: ''});
    chips.replaceChildren(
        element('span', {}, hasSelection(state) ? 'Selected: ' : 'Everything is selected. '), ...made,
        element(
            'span', {},
            ` ${counted(app.selection.indexes.length, 'sample')}${
                app.unit() === 'samples' ? '' : `, ${amount(app.selection.all, app.unit())}`}`));
    if (app.selection.indexes.length === 0 && made.length > 1)
      chips.append(element('span', {}, ': no sample matches all of these; remove one'));
    if (app.selection.before)
      chips.append(element(
          'span', {},
          `; before: ${
              amount(
                  app.selection.before.all,
                  app.unit())}, by the same event and function, of the whole capture`));
  };

  // Matches are shown while typing. Enter, or leaving the field, adds the search to the history.
  const typed = (text) => {
    app.state = {...app.state, search: text};
    findMatches();
    showMatches();
    draw();
  };
  const draw = () => {
    const {state} = app;
    answer?.draw();
    overview.draw();
    timeline.draw();
    for (const name of TABS) {
      const isShown = name === state.tab;
      panels[name].hidden = !isShown;
      tabs[name].setAttribute('aria-selected', String(isShown));
      tabs[name].tabIndex = isShown ? 0 : -1;
      if (isShown) views[name].forEach((view) => view.draw());
    }
  };
  const apply = () => {
    const before = app.state;
    app.state = readState(model, location.hash);
    if (before === null || selectsOthers(before, app.state)) app.selection = select(model, app.state);
    if (before === null || before.search !== app.state.search) findMatches();
    if (document.activeElement !== search) search.value = app.state.search;
    events.value = String(app.state.event);
    weights.value = app.state.by;
    weights.hidden = app.weightUnit() === 'samples';
    weights.options[0].textContent = app.weightUnit() || 'weight';
    showMatches();
    showSelection();
    draw();
  };

  const toMatch = (step) => (app.state.tab === 'stacks' && app.matches.frames !== null ? flame.toMatch(step) : false);
  const keys = {
    '/': () => search.focus(), 0: reset, '?': () => help.showModal(), n: () => toMatch(1), N: () => toMatch(-1),
    ...timeline.keys
  };
  TABS.forEach((name, i) => {
    keys[i + 1] = () => app.go({tab: name});
  });
  for (const key in flame.keys)
    keys[key] = () => {
      const of = views[app.state.tab][0].keys;
      return of ? of[key]() : false;
    };
  onKeys(document, keys, () => !help.open && !foldedBox.open);
  addEventListener('hashchange', apply);
  let waiting = 0;
  const redraw = () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(draw);
  };
  addEventListener('resize', redraw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    forgetColours();
    redraw();
  });
  // On paper everything is there, in light colours.
  for (const [event, isPrinted] of [['beforeprint', true], ['afterprint', false]])
    addEventListener(event, () => {
      document.documentElement.classList.toggle('print', isPrinted);
      forgetColours();
      draw();
    });
  apply();
  document.documentElement.dataset.ready = 'yes';
  setTimeout(() => {
    for (let i = 0; i < model.frames.count; i++) model.frames.name(i);
  }, 200);  // before they are searched
};

start().catch((fault) => {
  document.getElementById('page').textContent = `This page cannot be opened: ${fault.message}`;
});
