// The text on a frame.

export const FONT = '12px system-ui, sans-serif';

// The name of a template without its arguments: "f<...>::g" of "f<a, b<c>>::g". What are no brackets stays: "operator<", "->".
export const collapsed = (text) => {
  let short = '', depth = 0, from = 0;
  for (let i = 1; i < text.length; i++) {
    if (text[i] === '<' && (depth > 0 || (/\w/.test(text[i - 1]) && text.slice(i - 8, i) !== 'operator'))) {
      if (depth++ === 0) short += `${text.slice(from, i)}<...>`;
    } else if (text[i] === '>' && depth > 0 && text[i - 1] !== '-' && --depth === 0) {
      from = i + 1;
    }
  }
  return depth > 0 ? text : short + text.slice(from);
};
const remembered = (make) => {
  const made = new Map();
  return (text, ...more) => {
    if (made.size > 20000) made.clear();
    if (!made.has(text)) made.set(text, make(text, ...more));
    return made.get(text);
  };
};
const shortOf = remembered(collapsed), widthOf = remembered((text, pen) => pen.measureText(text).width);
const isHalf = (text, at) => /[\udc00-\udfff]/.test(text[at] || '');

// As much of a text as fits into `room` px: whole, without the arguments of templates, or without its middle; `pen`: the
// context of a canvas, with the font.
export const fitted = (text, room, pen) => {
  if (room < 16) return '';
  const most = Math.ceil(room / 3), fits = (one) => one.length <= most && widthOf(one, pen) <= room;
  if (fits(text)) return text;
  const short = shortOf(text);
  if (fits(short)) return short;
  const bare = short.replaceAll('<...>', '<>'), wide = widthOf(bare.slice(0, most), pen);
  for (let fit = Math.min(Math.floor(Math.min(bare.length, most) * room / wide), bare.length) - 1; fit > 1; fit--) {
    const end = fit < 8 ? bare.length : bare.length - Math.floor(fit / 3), begin = fit - (bare.length - end);
    const cut = `${bare.slice(0, begin)}…${bare.slice(end)}`;
    if (!isHalf(bare, begin) && !isHalf(bare, end) && pen.measureText(cut).width <= room) return cut;
  }
  return '';
};
// The same of "words, 14 %", or the number alone, each whole.
export const fittedShare = (text, room, pen) =>
    [text, text.split(', ').pop()].find((part) => fitted(part, room, pen) === part) || '';
