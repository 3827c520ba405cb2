// The search of pages and pictures: its field, and which names match.
import {element} from './dom.js';

// Text is found whatever its case; /regex/ and /regex/i are regular expressions. {test, fault}
export const matcher = (wanted) => {
  const form = /^\/([^]+)\/(i?)$/.exec(wanted);
  if (!form) {
    const lower = wanted.toLowerCase();
    return {test: (text) => text.toLowerCase().includes(lower), fault: ''};
  }
  try {
    const regex = new RegExp(form[1], form[2]);
    return {test: (text) => regex.test(text), fault: ''};
  } catch (fault) {
    return {test: () => false, fault: fault.message};
  }
};

// `go(text)`: by Enter, or when the field is left; Escape clears it.
export const makeSearchField = (go, attributes) => {
  const field = element('input', {
    type: 'search',
    placeholder: 'search: text or /regex/',
    'aria-label': 'search for text or /regex/',
    autocomplete: 'off',
    spellcheck: 'false',
    onchange: () => go(field.value),
    onkeydown: (event) => {
      if (event.key !== 'Enter' && event.key !== 'Escape') return;
      if (event.key === 'Escape') field.value = '';
      go(field.value);
      field.blur();
    },
    ...attributes
  });
  return field;
};
