// SPDX-License-Identifier: Apache-2.0
// Pictures of pages for the manual: node screenshots.mjs FOLDER OUT, with the reports that tools/dev/screenshots makes.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const require = createRequire(new URL('../../tools/report/package.json', import.meta.url));
const { chromium } = require('playwright-core');
const [folder, out] = process.argv.slice(2).map((p) => resolve(p));
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
const shots = [
  ['dgx1', 'dgx1/report.html', 'light', '#fabric'], ['dgx2', 'dgx2/report.html', 'dark', '#fabric'], ['fat-tree', 'fat-tree/report.html', 'light', '#fabric'],
  ['incast', 'incast/report.html', 'light', '#queues'], ['step', 'step/report.html', 'light', '#step'], ['step-timeline', 'step/report.html', 'dark', '#timeline'],
  ['compare', 'compare.html', 'light', '#compare'], ['curves', 'compare.html', 'light', '#curves'], ['answer', 'step/report.html', 'light', '#answer'], ['sweep', 'sweep.html', 'light', '#multiples'], ['front', 'sweep.html', 'light', '#front'],
];
for (const [name, file, colorScheme, part] of shots) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 2400 }, colorScheme });
  await page.goto(`file://${folder}/${file}`);
  await page.waitForTimeout(400);
  await page.locator(part).screenshot({ path: `${out}/${name}.png` });
  await page.close();
}
await browser.close();
