// What the scripts of pictures (flame graphs, heat maps) share; each comes after this one in its file.
'use strict';
const pictureOf = (svg) => {
  const view = document.defaultView, SVG = 'http://www.w3.org/2000/svg', HTML = 'http://www.w3.org/1999/xhtml';
  const maker = (space) => (name, attributes = {}, ...inside) => {
    const element = document.createElementNS(space, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    element.append(...inside);
    return element;
  };
  const html = maker(HTML), svgElement = maker(SVG);
  // HTML inside the picture, where text has lines.
  const foreign = (name, ...inside) => {
    const element = svgElement('foreignObject', {class: name}, ...inside);
    svg.append(element);
    return element;
  };
  // The keys of a picture: what each does.
  const helpOf = (keys) =>
      html('div', {class: 'help', id: 'help', role: 'dialog', 'aria-label': 'keys', hidden: ''},
          html('dl', {}, ...keys.flatMap(([key, does]) => [html('dt', {}, key), html('dd', {}, does)])));
  // The tooltip: a line of text each, the first one bold, beside the pointer and inside the window. What is
  // added to the picture later covers it.
  const tipBox = html('div', {class: 'tip', id: 'tip', hidden: ''});
  let tip = null;
  const addTip = () => {
    tip = foreign('tips', tipBox);
  };
  const hideTip = () => {
    tipBox.hidden = true;
    tip.setAttribute('width', 0);
  };
  const showTip = (event, lines, room, widest) => {
    const GAP = 10, TALLEST = 400;
    tipBox.replaceChildren(...lines.map((line, i) => html(i === 0 ? 'strong' : 'div', {}, line)));
    tipBox.hidden = false;
    const wide = Math.min(widest, room - 2 * GAP);
    tip.setAttribute('width', wide);
    tip.setAttribute('height', TALLEST);
    const tall = tipBox.getBoundingClientRect().height + 2;
    const isLow = event.clientY + 18 + tall > view.innerHeight;
    tip.setAttribute('x', view.scrollX + Math.max(Math.min(event.clientX + 12, room - wide - GAP), 0));
    tip.setAttribute('y', view.scrollY + (isLow ? Math.max(event.clientY - tall - 8, 0) : event.clientY + 18));
    tip.setAttribute('height', tall);
  };
  return {html, svgElement, foreign, helpOf, addTip, showTip, hideTip};
};
