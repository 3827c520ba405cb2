// What is shown, in the address behind #: a reload or a link shows the same, back and forward undo and redo.

const LISTS = {
  cpus: 'cpu',
  pids: 'pid',
  tids: 'tid'
};
export const ROWS = ['cpu', 'process', 'thread', 'container', 'state'];
export const TABS = ['stacks', 'values', 'events'];
export const PALETTES = {
  safe: 'kind of code',
  warm: 'kind of code, warm',
  module: 'module',
  wait: 'waits',
  change: 'change of share'
};
export const palettesOf = (model) => Object.keys(PALETTES).filter((name) => name !== 'change' || model.base);

// A page opens with an event that has stacks: a clock or counter unless it has hardly a sample, else the one with the most
// samples.
const FEW = 20;
const rankOf = (event) => [event.samples > 0 && event.hasStacks, event.isOfCpu && event.samples >= FEW, event.samples];
export const initialState = (model) => {
  let event = 0;
  model.events.forEach((one, i) => {
    const rank = rankOf(one), best = rankOf(model.events[event]);
    const differs = rank.findIndex((part, at) => Number(part) !== Number(best[at]));
    if (differs >= 0 && Number(rank[differs]) > Number(best[differs])) event = i;
  });
  return {
    event,
    finding: null,  // number in model.answer.parts
    by: 'weight',
    from: null,
    to: null,
    viewFrom: 0,
    viewTo: model.span,
    rows: model.answer && model.states ? 'state' : 'cpu',
    wait: '',  // an interval of a thread's states: "TID,SECONDS"
    clock: 'start',  // what times are counted from: 'start', or 'recorded': as tacho script prints them
    cpus: [],
    pids: [],
    tids: [],
    groups: [],
    focus: '',
    ...unchanged(model),
    steps: 0,
    palette: model.base ? 'change' : 'safe',
    search: '',
    tab: 'stacks',
    field: null,
    low: null,
    high: null,
    sort: model.base ? 'change' : 'self',
    side: 'after'
  };
};

const finite = (text) => text !== null && text !== '' && Number.isFinite(Number(text)) ? Number(text) : null;

export const readState = (model, fragment) => {
  const asked = new URLSearchParams(fragment.slice(1)), state = initialState(model);
  const event = model.events.findIndex((one) => one.name === asked.get('event'));
  if (event >= 0) state.event = event;
  const part = model.answer?.parts[finite(asked.get('finding')) - 1];
  if (part !== undefined) [state.finding, state.event] = [part.number, part.event];
  if (asked.get('by') === 'samples') state.by = 'samples';
  const times = (name) => (asked.get(name) || '').split(',').map((one) => model.offsetOf(one));
  const [from, to = null] = times('time');
  if (from !== null && to !== null && from <= to) [state.from, state.to] = [from, to];
  const [viewFrom, viewTo = null] = times('view');
  if (viewFrom !== null && viewTo !== null && viewFrom < viewTo)
    [state.viewFrom, state.viewTo] = [Math.max(viewFrom, 0), Math.min(viewTo, model.span)];
  if (ROWS.includes(asked.get('rows')) && (asked.get('rows') !== 'state' || model.states)) state.rows = asked.get('rows');
  state.wait = asked.get('wait') || '';
  if (asked.get('clock') === 'recorded') state.clock = 'recorded';
  for (const list in LISTS) state[list] = asked.getAll(LISTS[list]).map(finite).filter((one) => one !== null);
  state.groups = asked.getAll('container');
  state.focus = asked.get('function') || '';
  const [zoom, steps = 0] = (asked.get('zoom') || '').split(',').map(finite);
  if (Number.isInteger(zoom) && zoom >= 0 && zoom < model.tree.count && Number.isInteger(steps) && steps >= 0)
    [state.zoom, state.steps] = [zoom, steps];
  if (asked.get('graph') === 'callers') state.graph = 'callers';
  state.around = asked.get('around') || '';
  if (model.code) state.code = asked.get('code') || '';
  state.hide = asked.getAll('hide');
  state.modules = asked.getAll('module');
  state.recursion = asked.get('recursion') === '1';
  if (palettesOf(model).includes(asked.get('palette'))) state.palette = asked.get('palette');
  state.search = asked.get('search') || '';
  if (TABS.includes(asked.get('tab'))) state.tab = asked.get('tab');
  if (asked.has('field')) state.field = asked.get('field');
  const low = finite(asked.get('low')), high = finite(asked.get('high'));
  if (low !== null && high !== null && state.field !== null) [state.low, state.high] = [low, high];
  if (asked.get('side') === 'before' && model.base) state.side = 'before';
  if (['self', 'total', 'name', 'change'].includes(asked.get('sort'))) state.sort = asked.get('sort');
  return state;
};

export const addressOf = (model, state) => {
  const usual = initialState(model), fragment = new URLSearchParams();
  if (state.finding !== null)
    fragment.set('finding', state.finding + 1);
  else if (state.event !== usual.event)
    fragment.set('event', model.events[state.event].name);
  if (state.by !== usual.by) fragment.set('by', state.by);
  if (state.from !== null) fragment.set('time', `${model.seconds(state.from)},${model.seconds(state.to)}`);
  if (state.viewFrom !== 0 || state.viewTo !== model.span)
    fragment.set('view', `${model.seconds(state.viewFrom)},${model.seconds(state.viewTo)}`);
  if (state.rows !== usual.rows) fragment.set('rows', state.rows);
  for (const list in LISTS) state[list].forEach((one) => fragment.append(LISTS[list], one));
  state.groups.forEach((one) => fragment.append('container', one));
  if (state.focus !== '') fragment.set('function', state.focus);
  if (state.zoom !== usual.zoom) fragment.set('zoom', state.steps > 0 ? `${state.zoom},${state.steps}` : state.zoom);
  if (state.graph !== usual.graph) fragment.set('graph', state.graph);
  if (state.around !== '') fragment.set('around', state.around);
  if (state.code !== '') fragment.set('code', state.code);
  state.hide.forEach((one) => fragment.append('hide', one));
  state.modules.forEach((one) => fragment.append('module', one));
  if (state.recursion) fragment.set('recursion', '1');
  if (state.palette !== usual.palette) fragment.set('palette', state.palette);
  if (state.search !== '') fragment.set('search', state.search);
  if (state.tab !== usual.tab) fragment.set('tab', state.tab);
  if (state.field !== null) fragment.set('field', state.field);
  if (state.low !== null) {
    fragment.set('low', state.low);
    fragment.set('high', state.high);
  }
  if (state.wait !== '') fragment.set('wait', state.wait);
  if (state.clock !== usual.clock) fragment.set('clock', state.clock);
  if (state.side !== usual.side) fragment.set('side', state.side);
  if (state.sort !== usual.sort) fragment.set('sort', state.sort);
  return `#${fragment}`;
};

const SELECTING =
    ['event', 'finding', 'by', 'from', 'to', 'cpus', 'pids', 'tids', 'groups', 'focus', 'low', 'high'];
// Whether other samples are selected, or they weigh otherwise.
export const selectsOthers = (a, b) =>
    SELECTING.some((key) => String(a[key]) !== String(b[key])) || (a.low !== null && a.field !== b.field);

// Flame graphs of whole stacks, as they were recorded. `zoom` (with `steps`): a place of stacks.js; `graph`: or 'callers',
// from the leaves up; `around`: a function whose callers and callees are shown instead; `code`: one
// whose source is beside the graph.
export const unchanged = (model) =>
    ({zoom: model.tree.root, graph: 'callees', around: '', code: '', hide: [], modules: [], recursion: false});

// Everything selected.
export const cleared = () => ({
  finding: null,
  from: null,
  to: null,
  cpus: [],
  pids: [],
  tids: [],
  groups: [],
  focus: '',
  low: null,
  high: null
});
// Samples of another event.
export const ofEvent = (event) => ({event, finding: null, field: null, low: null, high: null});
export const hasSelection = (state) => state.finding !== null || state.from !== null || state.low !== null ||
    state.focus !== '' ||
    state.cpus.length + state.pids.length + state.tids.length + state.groups.length > 0;
