// Source and instructions of a function, beside the flame graph: each line with its share of the selected samples that
// were taken in the function.
import {button, element} from '../../browser/dom.js';
import {amount, grouped, share} from '../../browser/words.js';

import {weightsOf} from './model.js';

const BEFORE = 3, GAP = 8;  // lines of source, as in page_code.cc
const AT_ONCE = 2000;       // rows

// `functions`: the table in whose place it is.
export const makeCode = (app, functions) => {
  const {model} = app, {code, frames, samples} = model;
  const head = element('div'), body = element('tbody'), rest = element('p', {class: 'rest'});
  const box = element('div', {class: 'scroll tablebox', tabindex: 0, role: 'region', 'aria-label': 'Code'}, element('table', {class: 'code'}, body));
  const view = element('div', {class: 'codeview', hidden: true}, head, box, rest);
  let counted = {selection: null, sums: null}, shown = AT_ONCE, drawn = '', hasInstructions = false, wanted = -1, opened = new Set();

  // By name of a function: those that it is, or that it was inlined into.
  const byName = new Map();
  for (let i = 0; i < code.count; i++) {
    const add = (frame) => {
      const name = frames.name(frame), known = byName.get(name);
      if (known === undefined)
        byName.set(name, [i]);
      else if (known[known.length - 1] !== i)
        known.push(i);
    };
    add(code.frame[i]);
    for (let row = code.first[i]; row < code.first[i + 1]; row++)
      if (row === code.first[i] || code.frameOf[row] !== code.frameOf[row - 1]) add(code.frameOf[row]);
  }

  // The weights of the selection by instruction.
  const sums = () => {
    const {selection, state} = app;
    if (counted.selection === selection) return counted.sums;
    const found = new Float64Array(code.offset.length), weight = weightsOf(model, state);
    for (const i of selection.indexes)
      if (code.ofSample[i] > 0) found[code.ofSample[i] - 1] += state.by === 'samples' ? 1 : weight[i];
    counted = {selection, sums: found};
    return found;
  };
  const weightOf = (i) => sums().subarray(code.first[i], code.first[i + 1]).reduce((all, one) => all + one, 0);

  // What is in a function: lines of source by file, the heaviest first, each {line, weight, rows}; and instructions of no
  // known line.
  const contents = (i) => {
    const files = new Map(), bare = [];
    for (let row = code.first[i]; row < code.first[i + 1]; row++) {
      const file = code.file[row], line = code.line[row];
      if (file === 0) {
        bare.push(row);
        continue;
      }
      if (!files.has(file)) files.set(file, new Map());
      const lines = files.get(file);
      if (!lines.has(line)) lines.set(line, {line, weight: 0, rows: []});
      lines.get(line).rows.push(row);
      lines.get(line).weight += sums()[row];
    }
    const found = [...files].map(([file, lines]) => ({
      file, weight: [...lines.values()].reduce((all, one) => all + one.weight, 0),
      lines: [...lines.values()].sort((a, b) => a.line - b.line)
    }));
    return {files: found.sort((a, b) => b.weight - a.weight || b.lines.length - a.lines.length), bare};
  };
  const numberCell = (weight, all) => element(
      'td', {
        class: `number${weight > 0.1 * all ? ' hot' : ''}`,
        title: weight > 0 && `${amount(weight, app.unit())}: ${share(weight, app.selection.all)} of the selection`
      },
      weight > 0 ? share(weight, all) : '');
  const rowsOf = (i, all) => {
    const made = [], {files, bare} = contents(i);
    const addInstructions = (rows) => rows.forEach((row) => {
      const frame = code.frameOf[row], isInlined = frame !== code.frame[i] && frame !== code.frameOf[row - 1];
      made.push(() => element(
          'tr', {class: 'instruction'}, numberCell(sums()[row], all), element('td', {class: 'number'}, `+${code.offset[row].toString(16)}`),
          element('td', {title: isInlined && `inlined: ${frames.name(frame)}`}, model.text(code.text[row]))));
    });
    for (const {file, lines} of files) {
      const path = model.text(code.fileName(file));
      made.push(() => element('tr', {}, element('th', {colspan: 3, title: path}, path.split('/').slice(-3).join('/'))));
      let last = 0;
      for (const {line, weight, rows} of lines) {
        const from = last > 0 && line - last <= GAP ? last + 1 : Math.max(line - BEFORE, last + 1);
        if (last > 0 && from > last + 1) made.push(() => element('tr', {}, element('td', {colspan: 3, class: 'rest'}, '⋯')));
        for (let at = from; at < line; at++) {
          const text = code.source(file, at);
          if (text !== undefined)
            made.push(() => element('tr', {}, element('td'), element('td', {class: 'number'}, at), element('td', {}, model.text(text))));
        }
        last = line;
        const text = code.source(file, line), key = `${file} ${line}`, isOpen = hasInstructions || opened.has(key) || text === undefined;
        made.push(() => element(
            'tr', {class: 'source'}, numberCell(weight, all),
            element('td', {class: 'number'}, button(String(line), 'its instructions', () => {
              opened[opened.has(key) ? 'delete' : 'add'](key);
              draw();
            }, {'aria-expanded': String(isOpen), tabindex: -1})),
            element('td', {}, text === undefined ? '' : model.text(text))));
        if (isOpen) addInstructions(rows);
      }
    }
    if (bare.length > 0 && files.length > 0) made.push(() => element('tr', {}, element('th', {colspan: 3}, 'of no known line')));
    addInstructions(bare);
    return made;
  };

  const drawHead = (found, i, all) => {
    const {selection, state} = app;
    const choice = element(
        'select', {'aria-label': 'function', onchange: () => { wanted = Number(choice.value); draw(); }},
        ...found.map((one) => element('option', {value: one}, `${frames.name(code.frame[one])}, ${frames.module(code.frame[one])}: ${
            share(weightOf(one), selection.all)}`)));
    choice.value = String(i);
    const words = i < 0 ? ['The page has no code of this function: it has code only of the functions with the most samples.'] :
                          [all > 0 ? `${share(all, selection.all)} of the selection was taken in its code.` :
                                     'No selected sample was taken in its own code.', model.text(code.reason[i])];
    head.replaceChildren(
        element(
            'p', {class: 'tools'}, element('strong', {class: 'codename'}, state.code), ' ',
            button('Instructions', 'below each line of source', () => { hasInstructions = !hasInstructions; draw(); },
                   {'aria-pressed': String(hasInstructions)}),
            button('Close', 'the table of functions', () => app.go({code: ''}))),
        ...(found.length > 1 ? [choice] : []), element('p', {class: 'module'}, words.filter((one) => one !== '').join(' ')));
  };
  const draw = () => {
    const name = app.state.code, found = (byName.get(name) || []).slice().sort((a, b) => weightOf(b) - weightOf(a));
    view.hidden = name === '';
    functions.hidden = name !== '';
    if (view.hidden) return;
    const i = found.includes(wanted) ? wanted : found.length > 0 ? found[0] : -1, isNew = drawn !== `${name} ${i}`;
    if (isNew) [drawn, shown, opened] = [`${name} ${i}`, AT_ONCE, new Set()];
    const all = i < 0 ? 0 : weightOf(i), rows = i < 0 ? [] : rowsOf(i, all);
    drawHead(found, i, all);
    box.hidden = i < 0;
    box.setAttribute('aria-label', `Code of ${name}`);
    body.replaceChildren(...rows.slice(0, shown).map((make) => make()));
    rest.replaceChildren();
    if (rows.length > shown)
      rest.append(`${grouped(rows.length - shown)} more lines. `, button('Show more', 'the next ones', () => { shown += AT_ONCE; draw(); }));
    if (isNew) {
      // The heaviest line of source, or instruction.
      const share = (row) => parseFloat(row.cells[0].textContent) || 0;
      const hottest = [...body.rows].reduce((most, row) => (most === null || share(row) > share(most) ? row : most), null);
      box.scrollLeft = 0;
      box.scrollTop = hottest === null ? 0 : hottest.offsetTop - box.clientHeight / 3;
    }
  };
  return {element: view, draw};
};
