// SPDX-License-Identifier: Apache-2.0
// Numbers for people: four digits and a prefix, as the terminal prints them.

function digits(value: number, significant = 4): string {
  if (value === 0) return '0';
  const whole = Math.floor(Math.log10(Math.abs(value))) + 1;
  const text = value.toFixed(Math.max(0, Math.min(12, significant - whole)));
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

function prefixed(value: number, steps: [number, string][]): string {
  const size = Math.abs(value);
  const step = steps.find(([least]) => size >= least * 0.99995) ?? steps.at(-1)!;
  return `${digits(value / step[0])} ${step[1]}`;
}

export function seconds(value: number): string {
  if (value === 0) return '0 s';
  if (Math.abs(value) >= 86400) return `${digits(value / 86400)} d`;
  return prefixed(value, [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns'], [1e-12, 'ps']]);
}

// Powers of two where they say it shorter, as sizes of messages are given.
export function bytes(value: number): string {
  const binary: [number, string][] = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']];
  const fits = binary.find(([unit]) => value >= unit);
  if (fits && Number.isInteger((value / fits[0]) * 4)) return `${digits(value / fits[0])} ${fits[1]}`;
  return decimalBytes(value);
}

export function decimalBytes(value: number): string {
  return prefixed(value, [[1e15, 'PB'], [1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']]);
}

export const gbs = (value: number): string => `${digits(value)} GB/s`;
export const flops = (value: number): string =>
  prefixed(value, [[1e18, 'EFLOP/s'], [1e15, 'PFLOP/s'], [1e12, 'TFLOP/s'], [1e9, 'GFLOP/s'], [1, 'FLOP/s']]);
export const percent = (share: number): string => `${digits(100 * share, Math.abs(share) >= 1 ? 4 : 3)} %`;
export const ratio = (value: number): string => `${digits(value)} ×`;
export const count = (value: number): string => value.toLocaleString('en-US', { maximumFractionDigits: Math.abs(value) >= 1000 ? 0 : 3 });
export const change = (before: number, after: number): string => {
  if (before === 0) return after === 0 ? 'same' : 'new';
  const share = after / before - 1;
  return Math.abs(share) < 5e-5 ? 'same' : `${share > 0 ? '+' : '−'}${digits(Math.abs(100 * share), 3)} %`;
};

// Round values at an even distance that span [from, to].
export function ticks(from: number, to: number, most: number): number[] {
  if (!(to > from)) return [from];
  const raw = (to - from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999)!;
  const out: number[] = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; ++i) out.push(i * step + 0);
  return out;
}
