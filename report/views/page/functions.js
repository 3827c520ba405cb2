// The functions of the selection as a table: the same numbers as the flame graph beside it.
import {button, element} from '../../browser/dom.js';
import {onKeys} from '../../browser/keys.js';
import {amount, share, signed} from '../../browser/words.js';

const AT_ONCE = 100;

// A name that breaks into lines after its separators.
const breakable = (text) =>
    text.split(/(?<=::|[,/_<])(?=[^\s:])/).flatMap((part, i) => (i === 0 ? [part] : [element('wbr'), part]));

export const makeFunctions = (app) => {
  const {model} = app, {frames, tree} = model;
  const body = element('tbody'), head = element('tr'), rest = element('p', {class: 'rest'});
  const table = element(
      'table', {class: 'functions'}, element('caption', {}, 'Functions of the selection'),
      element('thead', {}, head), body);
  let shown = AT_ONCE, current = -1;  // the function whose row Tab leads to

  const columns = () => {
    const has = [['self', 'Self'], ['total', 'Total']];
    if (app.selection.before) has.push(['before', 'Before'], ['change', 'Change']);
    return [...has, ['name', 'Function'], ['module', 'Module']];
  };
  const shareOf = (frame, of) => (of.all > 0 ? of.total[frame] / of.all : 0);
  const change = (frame) => shareOf(frame, app.selection) - shareOf(frame, app.selection.before);

  // Functions that have a weight, and match the search; the first ones by the order that is asked for.
  const chosen = () => {
    const {self, total, before} = app.selection, {sort} = app.state, all = tree.frame[tree.root], found = [];
    for (let i = 0; i < frames.count; i++) {
      const isThere = total[i] > 0 || (before && before.total[i] > 0);
      if (!isThere || i === all || frames.kind(i) === 't') continue;
      if (app.matches.frames !== null && app.matches.frames[i] !== 1) continue;
      found.push(i);
    }
    const by = sort === 'total'     ? (i) => total[i] :
        sort === 'change' && before ? (i) => Math.abs(change(i)) :
                                      (i) => self[i];
    if (sort === 'name')
      found.sort((a, b) => (frames.name(a) < frames.name(b) ? -1 : 1));
    else
      found.sort((a, b) => by(b) - by(a) || total[b] - total[a] || a - b);
    return found;
  };

  const row = (i) => {
    const {self, total, all, before} = app.selection, name = frames.name(i), unit = app.unit();
    const cells = [
      element('td', {class: 'number', title: amount(self[i], unit)}, share(self[i], all)),
      element('td', {class: 'number', title: amount(total[i], unit)}, share(total[i], all))
    ];
    if (before) {
      const points = 100 * change(i);
      cells.push(
          element('td', {class: 'number'}, share(before.total[i], before.all)),
          element(
              'td',
              {class: `number ${
                   Math.abs(points) < 0.05 ? '' :
                       points > 0          ? 'more' :
                                             'less'}`},
              signed(points)));
    }
    const isFocus = app.state.focus === name;
    cells.push(
        element(
            'td', {class: 'name', 'data-frame': i},
            button(
                breakable(name), isFocus ? 'all stacks' : 'only stacks with this function',
                () => app.go({focus: isFocus ? '' : name, zoom: tree.root}),
                {'aria-pressed': String(isFocus), tabindex: -1})),
        element('td', {class: 'module'}, frames.module(i)));
    return element('tr', {}, ...cells);
  };

  const stopAt = (at, isInside) => {
    const buttons = body.querySelectorAll('.name button'), next = buttons[Math.min(Math.max(at, 0), buttons.length - 1)];
    buttons.forEach((one) => { one.tabIndex = one === next ? 0 : -1; });
    if (next) current = Number(next.parentNode.dataset.frame);
    if (next && isInside) next.focus();
  };
  const step = (by) => (pressed) => {
    const at = [...body.rows].findIndex((one) => one.contains(pressed.target));
    return at < 0 ? false : stopAt(at + by, true);
  };
  // The chosen frame of the flame graph has these keys too.
  const withRow = (changes) => (pressed) => {
    pressed.stopPropagation();
    app.go(changes(frames.name(current)));
  };
  onKeys(body, {
    ArrowUp: step(-1),
    ArrowDown: step(1),
    Home: step(-Infinity),
    End: step(Infinity),
    c: withRow((around) => ({around, zoom: tree.root})),
    ...(model.code && {s: withRow((code) => ({code}))})
  });

  const draw = () => {
    head.replaceChildren(...columns().map(([key, words]) => {
      const isSorted = app.state.sort === key;
      if (key === 'module' || key === 'before') return element('th', {scope: 'col'}, words);
      return element(
          'th', {scope: 'col', 'aria-sort': isSorted ? (key === 'name' ? 'ascending' : 'descending') : false},
          button(words, `sort by ${words.toLowerCase()}`, () => app.go({sort: key})));
    }));
    const found = chosen();
    const isInside = body.contains(document.activeElement);
    body.replaceChildren(...found.slice(0, shown).map(row));
    stopAt(Math.max(found.slice(0, shown).indexOf(current), 0), isInside);
    rest.replaceChildren();
    if (found.length > shown)
      rest.append(
          `${(found.length - shown).toLocaleString('en-US')} more functions. `,
          button('Show more', 'the next hundred', () => {
            shown += AT_ONCE;
            draw();
          }));
    else if (found.length === 0)
      rest.append('No function.');
  };
  return {
    element: element(
        'div', {class: 'functionsview'},
        element(
            'div', {
              class: 'scroll tablebox',
              tabindex: 0,
              role: 'region',
              'aria-label': 'Functions of the selection'
            },
            table),
        rest),
    draw
  };
};
