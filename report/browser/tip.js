// Tooltips: lines of text beside the pointer, the first one bold.
import {element} from './dom.js';

export const fillTip = (box, lines) =>
    box.replaceChildren(...lines.map((line, i) => element(i === 0 ? 'strong' : 'div', {}, line)));

// Where a box of that size is beside the pointer and inside the window: [x, y].
export const tipPlace = (x, y, {width, height}, roomWide, roomTall) => [
  Math.max(Math.min(x + 12, roomWide - width - 10), 0), Math.max(y + 20 + height > roomTall ? y - height - 8 : y + 18, 0)
];
