// Tooltips: lines of text beside the pointer, the first one bold.
import {element} from './dom.js';

export const fillTip = (box, lines) =>
    box.replaceChildren(...lines.map((line, i) => element(i === 0 ? 'strong' : 'div', {}, line)));

// Where a box of that size is beside the pointer and inside the window: [x, y].
export const tipPlace = (event, {width, height}, room) => {
  const view = document.defaultView, isLow = event.clientY + 20 + height > view.innerHeight;
  return [
    Math.max(Math.min(event.clientX + 12, room - width - 10), 0),
    Math.max(isLow ? event.clientY - height - 8 : event.clientY + 18, 0)
  ];
};
