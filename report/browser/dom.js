// Elements of HTML and SVG, for pages and pictures. Names from captures become text nodes alone, never markup.

const maker = (space) => (name, attributes = {}, ...inside) => {
  const made = document.createElementNS(space, name);
  for (const key in attributes) {
    if (key.startsWith('on'))
      made.addEventListener(key.slice(2), attributes[key]);
    else if (attributes[key] === true)
      made.setAttribute(key, '');
    else if (attributes[key] !== false && attributes[key] !== undefined)
      made.setAttribute(key, attributes[key]);
  }
  made.append(...inside);
  return made;
};
export const element = maker('http://www.w3.org/1999/xhtml');
export const svgElement = maker('http://www.w3.org/2000/svg');

// `text`: a text, or a list of texts and elements.
export const button = (text, title, action, attributes = {}) =>
    element('button', {type: 'button', title, onclick: action, ...attributes}, ...[text].flat());
