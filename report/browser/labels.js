// The text on a frame.

export const FONT = '12px system-ui, sans-serif';

const widths = new Map();
// As much of a text as fits into `room` px; `pen`: the context of a canvas, with the font.
export const fitted = (text, room, pen) => {
  if (room < 16) return '';
  const most = Math.ceil(room / 3);
  const shown = text.length > most ? text.slice(0, most) : text;
  if (!widths.has(shown)) {
    if (widths.size > 20000) widths.clear();
    widths.set(shown, pen.measureText(shown).width);
  }
  const wide = widths.get(shown);
  if (wide <= room && shown.length === text.length) return text;
  for (let fit = Math.floor(shown.length * room / wide); fit > 1; fit--) {
    const cut = `${shown.slice(0, fit)}…`, isHalf = /[\ud800-\udbff]/.test(shown[fit - 1]);
    if (!isHalf && pen.measureText(cut).width <= room) return cut;
  }
  return '';
};
