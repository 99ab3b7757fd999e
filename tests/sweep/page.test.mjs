// SPDX-License-Identifier: Apache-2.0
// The page of a sweep in a browser: what it shows equals the table it holds, charts answer to choices, nothing is loaded and nothing is
// complained about.
//   node page.test.mjs PAGE [PICTURE]      closes with "N passed, N failed"
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { check, finish, launch } from '../web/browser.mjs';

const file = resolve(process.argv[2]), picture = process.argv[3];
const kMostPageBytes = 1_500_000;

const html = readFileSync(file, 'utf8');
const data = /<script id="weft-data" type="application\/json">(.*?)<\/script>/s.exec(html)[1];
const table = JSON.parse(data)[0];
const good = table.points.filter((p) => Array.isArray(p[2]));
check('the page is small', statSync(file).size - data.length < kMostPageBytes);

const browser = await launch();
const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
const complaints = [];
page.on('console', (m) => ['error', 'warning'].includes(m.type()) && complaints.push(m.text()));
page.on('dialog', (d) => (complaints.push(`dialog ${d.message()}`), d.dismiss()));
page.on('pageerror', (e) => complaints.push(e.message));
page.on('request', (r) => !/^(file|data|blob):/.test(r.url()) && complaints.push(`wants ${r.url()}`));
await page.goto(`file://${file}`);
await page.waitForSelector('#rows-table tbody tr');

check('the headline counts the points', (await page.textContent('#headline')).includes(`${table.points.length} of ${table.planned} points`));
const marks = () => page.$$eval('#multiples path', (all) => all.length);
check('small multiples are drawn', (await marks()) > 10, `${await marks()}`);
check('the front is drawn', (await page.$$eval('#front-chart path', (all) => all.length)) > 10);

// Every row of the table shows the values of its point.
const rows = await page.$$eval('#rows-table tbody tr', (all) => all.map((tr) => [...tr.cells].map((td) => [td.textContent, td.title])));
check('rows are shown', rows.length === Math.min(300, good.length), `${rows.length}`);
let wrong = '';
for (const cells of rows) {
  const [, at, outputs] = table.points.find((p) => p[0] === Number(cells[0][0]));
  table.axes.forEach((axis, i) => cells[1 + i][0] !== axis.labels[at[i]] && (wrong += ` ${axis.name} ${cells[1 + i][0]}`));
  table.outputs.forEach((name, i) => {
    const cell = cells[1 + table.axes.length + i];
    if (outputs[i] !== null && cell[1] !== String(outputs[i])) wrong += ` ${name} ${cell}`;
  });
}
check('rows equal the table', wrong === '', wrong.slice(0, 300));

// The front holds no point that another beats.
const column = (name) => {
  const axis = table.axes.findIndex((a) => a.name === name);
  return axis >= 0 ? (p) => table.axes[axis].numbers[p[1][axis]] : (p) => p[2][table.outputs.indexOf(name)];
};
const chosen = async (id) => page.$eval(id, (s) => s.value);
async function checkFront(what) {
  const [x, y] = [column(await chosen('#front-x')), column(await chosen('#front-y'))];
  const [sx, sy] = [await chosen('#front-x-best'), await chosen('#front-y-best')].map((b) => (b === 'min' ? 1 : -1));
  const beats = (a, b) => sx * x(a) <= sx * x(b) && sy * y(a) <= sy * y(b) && (x(a) !== x(b) || y(a) !== y(b));
  const expected = good.filter((p) => !good.some((q) => beats(q, p))).map((p) => p[0]).sort((a, b) => a - b);
  const shown = (await page.$$eval('#front-table tbody tr', (all) => all.map((tr) => Number(tr.cells[0].textContent)))).sort((a, b) => a - b);
  check(what, JSON.stringify(shown) === JSON.stringify(expected.slice(0, shown.length)) && shown.length === Math.min(100, expected.length), `${shown} for ${expected}`);
}
await checkFront('the front is the front');
await page.selectOption('#front-y-best', (await chosen('#front-y-best')) === 'min' ? 'max' : 'min');
await page.waitForTimeout(100);
await checkFront('it follows what is wanted');

const panels = () => page.$$eval('[id^="multiples-chart-"]', (all) => all.length);
const line = table.axes.find((a) => a.labels.length > 1 && a.numbers === null);
if (line && (await chosen('#multiples-x')) !== line.name) {
  await page.selectOption('#multiples-line', '');
  await page.selectOption('#multiples-panel', line.name);
  await page.waitForTimeout(200);
  const index = table.axes.indexOf(line), values = new Set(good.map((p) => p[1][index])).size;
  check('a panel for each value of an axis', (await panels()) === values, `${await panels()} of ${values}`);
}
await page.click('#rows-table thead th:last-child button');
check('rows are sorted on a click', (await page.getAttribute('#rows-table thead th:last-child', 'aria-sort')) === 'ascending');
await page.fill('#rows-search', 'nothing of this kind');
await page.waitForTimeout(100);
check('rows are searched', (await page.$$eval('#rows-table tbody tr', (all) => all.length)) === 0);
await page.fill('#rows-search', '');
const theme = await page.evaluate(() => document.documentElement.dataset.theme);
await page.click('.theme');
await page.waitForTimeout(100);
check('light and dark', (await page.evaluate(() => document.documentElement.dataset.theme)) !== theme);
check('no part is wider than the window', await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
check('nothing is complained about', complaints.length === 0, complaints.join('; ').slice(0, 500));
await page.click('.theme');
if (picture) {
  await page.setViewportSize({ width: 1280, height: 1180 });
  await page.reload();
  await page.waitForTimeout(500);
  await page.screenshot({ path: picture });
}
await browser.close();
finish();
