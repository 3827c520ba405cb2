// ClickHouse's HTTP interface, as far as tacho fleet uses it, in front of the engine of the npm package chdb.
//   node clickhouse_bridge.js FOLDER [N]     prints its port; tables are in FOLDER; it dies at request N
'use strict';
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const {Session} = require(process.env.TACHO_CHDB || 'chdb');

const folder = process.argv[2];
let left = Number(process.argv[3] || Infinity);
const session = new Session(path.join(folder, 'data'));

function answer(url, body) {
  const given = Object.fromEntries(url.searchParams);
  const values = {};
  for (const [name, value] of Object.entries(given))
    if (name.startsWith('param_')) values[name.slice(6)] = value.replace(/\\([tn\\])/g, (_, c) => ({t: '\t', n: '\n'})[c] || c);
  const insert = /^INSERT INTO (\w+) FORMAT CSVWithNames$/.exec(given.query || '');
  if (!insert) return session.queryBind(body.toString(), values, given.default_format || 'TabSeparated');
  const file = path.join(folder, 'body.csv');
  fs.writeFileSync(file, body);
  const columns = body.subarray(0, body.indexOf('\n')).toString();
  return session.query(`INSERT INTO ${insert[1]} (${columns}) SELECT ${columns} FROM file('${file}', 'CSVWithNames')`);
}

http.createServer((request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    if (--left <= 0) process.exit(1);
    let status = 200, text = '';
    try {
      text = answer(new URL(request.url, 'http://localhost'), Buffer.concat(pieces)) || '';
    } catch (error) {
      [status, text] = [500, error.message];
    }
    response.writeHead(status, {'Content-Type': 'text/plain', Connection: 'close'});
    response.end(text);
  });
}).listen(0, '127.0.0.1', function() { console.log(this.address().port); });
