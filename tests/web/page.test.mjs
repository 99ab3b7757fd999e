// SPDX-License-Identifier: Apache-2.0
// The page in a browser: every figure it shows equals the JSON it holds, charts are there and answer to clicks and keys, nothing
// is loaded and nothing is complained about. Needs Chromium and the reports that tests/web/run makes.
//   node page.test.mjs FOLDER      closes with "N passed, N failed"
import { readdirSync, readFileSync, writeFileSync, existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { check, finish, launch } from './browser.mjs';

const folder = resolve(process.argv[2]);
const kMostPageBytes = 1_500_000, kMostStartMs = 3000;

const browser = await launch();

async function open(file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  // A hint about this test's own look at the pixels is no complaint.
  page.on('console', (m) => ['error', 'warning'].includes(m.type()) && !m.text().includes('willReadFrequently') && complaints.push(m.text()));
  page.on('pageerror', (e) => complaints.push(e.message));
  page.on('request', (r) => !/^(file|data|blob):/.test(r.url()) && complaints.push(`wants ${r.url()}`));
  const start = Date.now();
  await page.goto(`file://${file}`);
  await page.waitForSelector('#answer, #curves');
  return { page, complaints, took: Date.now() - start, close: () => context.close() };
}

const valueAt = (json, pointer) => pointer.split('/').slice(1).reduce((here, key) => here?.[key.replaceAll('~1', '/').replaceAll('~0', '~')], json);

// "3.987 ms" as a number; NaN when it is not one.
const units = { s: 1, ms: 1e-3, 'µs': 1e-6, ns: 1e-9, ps: 1e-12, d: 86400, '%': 0.01, 'GB/s': 1, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, PB: 1e15,
  KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, 'FLOP/s': 1, 'GFLOP/s': 1e9, 'TFLOP/s': 1e12, 'PFLOP/s': 1e15, 'GB/s a flow': 1, '': 1 };
function read(text) {
  const found = /^([-−]?[\d,.]+) ?(.*)$/.exec(text.trim());
  if (!found || !(found[2] in units)) return NaN;
  return Number(found[1].replaceAll(',', '').replace('−', '-')) * units[found[2]];
}

async function figuresEqual(page, name, reports) {
  const figures = await page.$$eval('data.figure', (all) => all.map((f) => [f.dataset.path, f.dataset.fingerprint, f.value, f.textContent]));
  check(`${name}: has figures`, figures.length > 8, `${figures.length}`);
  let wrong = '';
  for (const [path, fingerprint, value, text] of figures) {
    const same = reports.filter((r) => r.fingerprint === fingerprint).map((r) => valueAt(r, path));
    if (!same.includes(Number(value))) wrong += ` ${path}=${value} (JSON ${same})`;
    const shown = read(text);
    // Four digits, three for shares; counts from the network as they are.
    if (!(Math.abs(shown - Number(value)) <= 6e-3 * Math.abs(Number(value)) + 1e-15)) wrong += ` ${path} shows ${text} for ${value}`;
  }
  check(`${name}: ${figures.length} figures equal the JSON`, wrong === '', wrong.slice(0, 600));
}

// Whether a canvas has been drawn on: how many colours a coarse grid of its pixels has.
const colours = (page, id) => page.$eval(id, (c) => {
  const g = c.getContext('2d'), seen = new Set();
  const { data } = g.getImageData(0, 0, c.width, c.height);
  for (let i = 0; i < data.length; i += 4 * 53) seen.add(`${data[i]},${data[i + 1]},${data[i + 2]},${data[i + 3]}`);
  return seen.size;
});

async function runPage(name) {
  const report = JSON.parse(readFileSync(join(folder, name, 'report.json'), 'utf8'));
  const { page, complaints, took, close } = await open(join(folder, name, 'report.html'));
  check(`${name}: opens in ${kMostStartMs} ms`, took < kMostStartMs, `${took} ms`);
  await figuresEqual(page, name, [report]);
  await page.waitForTimeout(150);
  check(`${name}: the fabric is drawn`, (await colours(page, '#fabric-canvas')) > 3);
  if (report.view.timeline.lane.length > 0) check(`${name}: the timeline is drawn`, (await colours(page, '#timeline-canvas')) > 3);
  const charts = await page.$$eval('.chart', (all) => all.map((c) => [c.id, c.querySelectorAll('svg path').length]));
  for (const [id, paths] of charts) check(`${name}: ${id} has marks`, paths > 2);
  if (report.bottlenecks.length > 0) check(`${name}: limits are charted`, charts.some(([id]) => id === 'limits-chart'));
  if (report.links.some((l) => l.ecn_marks > 0)) check(`${name}: marks are charted`, charts.some(([id]) => id === 'marks-chart'));
  const rows = await page.$$eval('#links-table tbody tr', (all) => all.length);
  check(`${name}: all links are listed`, rows === report.links.length, `${rows}`);
  const first = report.bottlenecks.find((b) => b.gain_if_infinite_s > 0);
  const headline = await page.textContent('.headline');
  const known = report.bottlenecks.some((b) => b.gain_if_infinite_s !== null);
  const named = first ? first.resource : known ? 'No single kind' : `the busiest is ${report.bottlenecks[0]?.resource}`;
  check(`${name}: the headline names the bottleneck`, headline.includes(named) || report.bottlenecks.length === 0, headline);
  check(`${name}: no wider than the window`, await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
  return { page, complaints, report, done: async () => {
    check(`${name}: no complaints`, complaints.length === 0, complaints.join('; '));
    await close();
  } };
}

async function interaction(name) {
  const { page, report, done } = await runPage(name);
  const scale = (id) => page.$eval(id, (c) => Number(c.dataset.scale));
  for (const id of ['#fabric-canvas', '#timeline-canvas']) {
    await page.focus(id);
    const before = await scale(id);
    await page.keyboard.press('+');
    await page.waitForTimeout(80);
    check(`${id}: + zooms`, (await scale(id)) > before * 1.4);
    await page.keyboard.press('0');
    await page.waitForTimeout(80);
    check(`${id}: 0 shows all again`, Math.abs((await scale(id)) - before) < 1e-9 * before);
    const box = await page.locator(id).boundingBox();
    await page.locator(id).click({ position: { x: box.width - 4, y: 4 } });
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.wheel(0, -300);
    await page.waitForTimeout(80);
    check(`${id}: the wheel zooms`, (await scale(id)) > before * 1.2);
    await page.keyboard.press('0');
  }
  // Into a server by search, and a part of it by click.
  await page.fill('.finder input', 'server1');
  await page.keyboard.press('Enter');
  await page.waitForTimeout(120);
  check('the finder opens a server', (await page.textContent('.crumbs')).includes('server1'));
  check('its inside is drawn', (await colours(page, '#fabric-canvas')) > 3);
  await page.click('.crumbs button');
  check('the way back leads to the network', !(await page.textContent('.crumbs')).includes('server1'));
  await page.click('#fabric-details button');
  check('a busy server opens from the list', (await page.textContent('.crumbs')).includes('server'));
  // The configuration is searchable.
  const values = await page.$$eval('#config-table tbody tr', (all) => all.length);
  await page.fill('#config-search', '/fabric/network');
  const found = await page.$$eval('#config-table tbody tr td:first-child', (all) => all.map((c) => c.textContent));
  check('search narrows the configuration', found.length > 0 && found.length < values && found.every((p) => p.includes('/fabric/network')));
  // Sorting.
  await page.click('#links-table th button');
  const ids = await page.$$eval('#links-table tbody tr td:first-child', (all) => all.map((c) => c.textContent));
  check('links sort by name', ids.join() === [...ids].sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).join());
  // Both themes.
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.click('.theme');
  check('the theme changes', (await background()) !== light);
  await page.emulateMedia({ media: 'print' });
  check('on paper nothing scrolls away', await page.$eval('#links .scroll', (s) => getComputedStyle(s).maxHeight === 'none'));
  check('title', (await page.title()).includes(report.scenario));
  await done();
}

async function comparison() {
  const { page, complaints, close } = await open(join(folder, 'compare.html'));
  const inside = JSON.parse(await page.$eval('#weft-data', (s) => s.textContent));
  await figuresEqual(page, 'comparison', inside.map((d) => d.report));
  check('the times are charted', (await page.$$('#compare-chart svg path')).length > 2);
  check('curves are charted', (await page.$$('#bandwidth-chart svg path')).length > 2 && (await page.$$('#latency-chart svg path')).length > 2);
  const runs = inside.filter((d) => d.report.time_s !== undefined);
  check('every report has a row', (await page.$$('#compare-table tbody tr')).length === runs.length);
  check('differences of the input are listed', (await page.$$('#differences-table tbody tr')).length > 0);
  await page.selectOption('#chooser', '1');
  await page.waitForTimeout(150);
  const shown = await page.$eval('#answer data.figure', (f) => Number(f.value));
  check('another report can be chosen', shown === runs[1].report.time_s);
  check('comparison: no complaints', complaints.length === 0, complaints.join('; '));
  await close();
}

// trace.json.gz as Chrome's trace events: known phases, slices of a track in a row, arrows in pairs, time within the run.
function trace(name, most = Infinity) {
  const report = JSON.parse(readFileSync(join(folder, name, 'report.json'), 'utf8'));
  const { traceEvents: events, otherData } = JSON.parse(gunzipSync(readFileSync(join(folder, name, 'trace.json.gz'))).toString());
  const slices = events.filter((e) => e.ph === 'X');
  const known = events.every((e) => ['M', 'X', 's', 'f', 'C'].includes(e.ph) && Number.isInteger(e.pid) && typeof e.name === 'string');
  check(`${name}: trace events are of known phases`, known);
  check(`${name}: slices have a track, a start and a length`, slices.length > 0 && slices.every((e) => Number.isInteger(e.tid) && e.ts >= 0 && e.dur > 0));
  const named = new Set(events.filter((e) => e.name === 'thread_name').map((e) => `${e.pid}/${e.tid}`));
  check(`${name}: every track has a name`, slices.every((e) => named.has(`${e.pid}/${e.tid}`)));
  const tracks = new Map();
  for (const e of slices) tracks.set(`${e.pid}/${e.tid}`, [...(tracks.get(`${e.pid}/${e.tid}`) ?? []), e]);
  let overlaps = 0;
  for (const track of tracks.values()) {
    track.sort((a, b) => a.ts - b.ts);
    for (let i = 1; i < track.length; ++i) overlaps += track[i - 1].ts + track[i - 1].dur > track[i].ts + 1e-6 ? 1 : 0;
  }
  check(`${name}: slices of one track never overlap`, overlaps === 0, `${overlaps}`);
  check(`${name}: nothing ends after the run`, Math.max(...slices.map((e) => e.ts + e.dur)) <= report.time_s * 1e6 + 1e-3);
  const ids = (ph) => events.filter((e) => e.ph === ph).map((e) => e.id).sort().join();
  check(`${name}: arrows have both ends`, ids('s') === ids('f'));
  check(`${name}: counters end at nothing`, [...new Map(events.filter((e) => e.ph === 'C').map((e) => [e.pid, e.args.transfers])).values()].every((n) => n === 0));
  check(`${name}: at most ${most} slices, the rest counted`, slices.length <= most && (most === Infinity || otherData.left_out > 0));
}

// A name that tries to end the script that holds it.
async function hostile() {
  const page = readFileSync(join(folder, 'hostile.html'), 'utf8');
  check('names cannot end the script', !page.includes('</script><script>alert'));
  const opened = await open(join(folder, 'hostile.html'));
  check('hostile: shown as text', (await opened.page.textContent('.question')).includes('</script>'));
  check('hostile: no complaints', opened.complaints.length === 0, opened.complaints.join('; '));
  await opened.close();
}

const names = readdirSync(folder).filter((n) => existsSync(join(folder, n, 'report.html')) && n !== 'hostile').sort();
check('there are reports', names.length >= 3, names.join());
const empty = readFileSync(join(folder, names[0], 'report.html'), 'utf8').replace(/(<script id="weft-data"[^>]*>)[^]*?(<\/script>)/, '$1[]$2');
check('the page without data is small', empty.length < kMostPageBytes, `${empty.length}`);
check('the page names no other place to load from', !/\b(src|href)="(https?:)?\/\//.test(empty));
writeFileSync(join(folder, 'empty.html'), empty);
for (const name of names) await (await runPage(name)).done();
for (const name of ['dgx2', 'incast', 'step']) trace(name);
trace('step-cut', 50);
const step = JSON.parse(readFileSync(join(folder, 'step/report.json'), 'utf8')).jobs[0];
const parts = step.compute_s + Object.values(step.exposed_comm_s).reduce((a, b) => a + b, 0) + step.bubble_fraction * step.step_time_s;
check('the parts of a step add up to it', Math.abs(parts - step.step_time_s) < 1e-6 * step.step_time_s, `${parts} of ${step.step_time_s}`);
{
  const { page, close } = await open(join(folder, 'step/report.html'));
  const charts = await page.$$eval('.chart', (all) => all.map((c) => c.id));
  check('a step has its charts', ['step-chart-0', 'exposed-chart-0'].every((id) => charts.includes(id)), charts.join());
  await close();
}
await interaction('fat-tree');
await comparison();
await hostile();
if (statSync(join(folder, 'large/report.html'), { throwIfNoEntry: false })) {
  const { page, close } = await open(join(folder, 'large/report.html'));
  const frames = await page.evaluate(async () => {
    const canvas = document.querySelector('#fabric-canvas');
    const start = performance.now();
    for (let i = 0; i < 10; ++i) {
      canvas.focus();
      canvas.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft' }));
      await new Promise((r) => requestAnimationFrame(() => r()));
    }
    return (performance.now() - start) / 10;
  });
  console.log(`large fabric: ${Math.round(frames)} ms a frame`);
  check('a large fabric moves fluidly', frames < 250, `${frames} ms a frame`);
  await close();
}
await browser.close();
finish();
