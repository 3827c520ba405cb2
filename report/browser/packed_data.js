// Reads the data inside a page or a picture: base64 in script elements that browsers do not run, packed by
// gzip. Behind four bytes of length is a head in JSON, which lists the columns of numbers that follow
// (packed_data.h has the same forms).

const bytesOf = (text) => {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
};

const unpack = async () => {
  const parts = [...document.querySelectorAll('script.data')].map((element) => {
    const bytes = bytesOf(element.textContent);
    element.remove();
    return bytes;
  });
  const reader = new Blob(parts).stream().pipeThrough(new DecompressionStream('gzip')).getReader();
  const pieces = [];
  let size = 0;
  for (;;) {
    const {done, value} = await reader.read();
    if (done) break;
    pieces.push(value);
    size += value.length;
  }
  const all = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
};

// The lowest bytes of all numbers, then the second ones, ...
const readNumbers = (bytes, count, into) => {
  for (let begin = 0, unit = 1; begin < bytes.length; begin += count, unit *= 256)
    for (let i = 0; i < count; i++) into[i] += bytes[begin + i] * unit;
  return into;
};
// Zigzag: 0, -1, 1, -2, 2, ... The sign is read from the bytes: a large number has lost its last bits.
const readSigned = (bytes, count, areDifferences) => {
  const numbers = readNumbers(bytes, count, new Float64Array(count));
  let before = 0;
  for (let i = 0; i < count; i++) {
    const half = Math.floor(numbers[i] / 2), shown = (bytes[i] & 1) === 0 ? half : -half - 1;
    numbers[i] = before + shown;
    if (areDifferences) before = numbers[i];
  }
  return numbers;
};

const FORMS = {
  u: (bytes, count) => readNumbers(bytes, count, new Uint32Array(count)),
  w: (bytes, count) => readNumbers(bytes, count, new Float64Array(count)),
  z: (bytes, count) => readSigned(bytes, count, false),
  d: (bytes, count) => readSigned(bytes, count, true),
  f: (bytes, count) => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length),
          numbers = new Float64Array(count);
    for (let i = 0; i < count; i++) numbers[i] = view.getFloat64(8 * i, true);
    return numbers;
  },
  b: (bytes) => bytes
};

// Texts by number, each decoded when it is first asked for.
const textTable = (sizes, bytes) => {
  const starts = new Float64Array(sizes.length + 1), known = new Array(sizes.length),
        decoder = new TextDecoder();
  for (let i = 0; i < sizes.length; i++) starts[i + 1] = starts[i] + sizes[i];
  const text = (number) => {
    if (known[number] === undefined)
      known[number] = decoder.decode(bytes.subarray(starts[number], starts[number + 1]));
    return known[number];
  };
  return {text, count: sizes.length};
};

// {head, columns: name -> typed array, text(number), texts: how many}
export const openData = async () => {
  const all = await unpack();
  const size = new DataView(all.buffer).getUint32(0, true);
  const {head, columns: list} = JSON.parse(new TextDecoder().decode(all.subarray(4, 4 + size)));
  const columns = new Map();
  let at = 4 + size;
  for (const [name, form, count, bytes] of list) {
    columns.set(name, FORMS[form](all.subarray(at, at + bytes), count));
    at += bytes;
  }
  const {text, count} = textTable(columns.get('text.size'), columns.get('text.bytes'));
  return {head, columns, text, texts: count};
};
