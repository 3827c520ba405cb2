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

// Copies the text that `shown` shows, and says so by `said`. Where a browser does not allow it, the text is selected, and Ctrl+C
// copies it.
export const copyText = (shown, said = () => {}) => {
  const range = document.createRange(), selection = document.defaultView.getSelection();
  range.selectNodeContents(shown);
  selection.removeAllRanges();
  selection.addRange(range);
  const copied = document.defaultView.navigator.clipboard?.writeText(shown.textContent) || Promise.reject();
  copied.then(() => said('copied'), () => said('Ctrl+C copies it'));
};

// `text`: a text, or a list of texts and elements.
export const button = (text, title, action, attributes = {}) =>
    element('button', {type: 'button', title, onclick: action, ...attributes}, ...[text].flat());
