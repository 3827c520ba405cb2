// Keys, and the list of them.
import {element} from './dom.js';

export const ARROWS = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1]
};

const FIELDS = ['input', 'select', 'textarea'];
// `keys`: by name of the key, what it does; false: nothing, so that the browser does what it does with it. A field keeps
// the keys that are typed in it. `isFree`: whether keys are taken now.
export const onKeys = (target, keys, isFree = () => true) => target.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !isFree()) return;
  if (FIELDS.includes(event.target.localName)) {
    if (event.key === 'Escape') event.target.blur();
    return;
  }
  if (!Object.hasOwn(keys, event.key) || keys[event.key](event) === false) return;
  event.preventDefault();
});

// [[key, what it does]]
export const keyList = (keys) => element(
    'dl', {}, ...keys.flatMap(([key, does]) => [element('dt', {}, key), element('dd', {}, does)]));
