// What is drawn on the rows of the timeline beside bars and states; and a legend, in which each has the same drawing.
import {element} from '../../browser/dom.js';

import {colour, pen} from './canvas.js';

// From the row of the thread that wakes to that of the woken one.
export const drawWake = (context, x, start, end) => {
  const sign = end > start ? -1 : 1;
  context.strokeStyle = context.fillStyle = colour('ink');
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x + 0.5, start);
  context.lineTo(x + 0.5, end);
  context.stroke();
  context.beginPath();
  context.moveTo(x + 0.5, end);
  context.lineTo(x - 2.5, end + 5 * sign);
  context.lineTo(x + 3.5, end + 5 * sign);
  context.fill();
};
export const drawPoint = (context, x, y) => {
  context.fillStyle = colour('paper');
  context.strokeStyle = colour('ink');
  context.lineWidth = 1.5;
  context.beginPath();
  context.arc(x, y, 3, 0, 7);
  context.fill();
  context.stroke();
};
export const drawFrame = (context, name, x, y, width, height) => {
  context.strokeStyle = colour(name);
  context.lineWidth = 2;
  context.strokeRect(x, y, width, height);
};

const WIDE = 16, TALL = 14;
const fill = (name, x, y, width, height) => (context) => {
  context.fillStyle = colour(name);
  context.fillRect(x, y, width, height);
};
const MARKS = {
  wake: (context) => drawWake(context, 7, 1, TALL - 1),
  point: (context) => drawPoint(context, WIDE / 2, TALL / 2),
  chosen: (context) => drawFrame(context, 'ink', 1, 1, WIDE - 2, TALL - 2),
  time: (context) => drawFrame(context, 'focus', 1, 1, WIDE - 2, TALL - 2),
  parts: (context) => [[0, 8, 6], [1, 4, 4], [3, 0, 4]].forEach(([state, y, tall]) => fill(`state-${state}`, 6, y, 4, tall)(context)),
  pale: fill('bar-rest', 2, 2, WIDE - 4, TALL - 2),
  ground: fill('selected', 0, 0, WIDE, TALL)
};
// `shown`: [[mark, words]].
export const makeMarks = () => {
  const legend = element('p', {class: 'legend marks'});
  let drawn = '';
  return {
    element: legend,
    draw: (shown) => {
      const wanted = `${colour('ink')} ${shown}`;
      if (wanted === drawn) return;
      drawn = wanted;
      legend.hidden = shown.length === 0;
      legend.replaceChildren(...shown.map(([mark, words]) => {
        const canvas = element('canvas', {class: 'mark', 'aria-hidden': 'true'});
        MARKS[mark](pen(canvas, WIDE, TALL));
        return element('span', {}, canvas, words);
      }));
    }
  };
};
