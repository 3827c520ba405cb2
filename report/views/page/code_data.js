// Source and instructions in a page.

// The code in the page's data (page_code.h); null: it has none. Instructions have numbers; those of a function follow
// each other.
export const readCode = (columns) => {
  if (!columns.has('code.frame')) return null;
  const column = (name) => columns.get(name), counts = column('code.rows'), sizes = column('row.size'), first = [0],
        offset = new Uint32Array(sizes.length), sources = new Map();
  counts.forEach((count, i) => {
    first.push(first[i] + count);
    for (let row = first[i] + 1; row < first[i + 1]; row++) offset[row] = offset[row - 1] + sizes[row - 1];
  });
  column('source.file').forEach((file, i) => {
    if (!sources.has(file)) sources.set(file, new Map());
    sources.get(file).set(column('source.line')[i], column('source.text')[i]);
  });
  return {
    count: counts.length,
    first,  // instruction of each function, and behind the last one
    frame: column('code.frame'),
    reason: column('code.reason'),  // a text: what is missing of its instructions
    offset,
    text: column('row.text'),
    frameOf: column('row.frame'),  // the call that was inlined there
    file: column('row.file'),
    line: column('row.line'),
    fileName: (file) => column('file.name')[file - 1],
    source: (file, line) => sources.get(file)?.get(line),
    ofSample: column('code')  // from 1 up
  };
};
