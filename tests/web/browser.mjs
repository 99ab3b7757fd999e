// SPDX-License-Identifier: Apache-2.0
// What tests of pages share: Chromium, checks that are counted, the closing line "N passed, N failed".
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../tools/report/package.json', import.meta.url));
const { chromium } = require('playwright-core');
const programs = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export const launch = () => chromium.launch({ executablePath: programs.find(existsSync), args: ['--no-sandbox', '--disable-gpu'] });

let passed = 0, failed = 0;
export function check(what, good, told = '') {
  if (good) ++passed;
  else {
    ++failed;
    console.log(`FAILED ${what} ${told}`);
  }
}

export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 && passed > 0 ? 0 : 1);
}
