// SPDX-License-Identifier: Apache-2.0
// Colours that people with any colour vision tell apart: Okabe and Ito's for kinds, a scale of steadily changing lightness for
// load. Both for light and dark pages.

export interface Palette {
  dark: boolean;
  ink: string;
  muted: string;
  faint: string;
  line: string;
  card: string;
  accent: string;
  series: string[];
  kinds: Record<string, string>;
  scale: string[];
}

const okabe = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#7a5c2e', '#6b6f76'];
const okabeDark = ['#4ba3e3', '#f0803c', '#2fbf94', '#e39bc4', '#f2b632', '#8bd0f5', '#c9a36b', '#a4a9b3'];

export const light: Palette = {
  dark: false,
  ink: '#1b2330',
  muted: '#5a6472',
  faint: '#8b95a3',
  line: '#dfe4ea',
  card: '#ffffff',
  accent: '#0a5c9e',
  series: okabe,
  kinds: { compute: '#0072b2', backward: '#5aa9d6', communication: '#e08a1e', latency: '#cc79a7', software: '#8b95a3' },
  scale: ['#d3dae3', '#ecc35c', '#ee9440', '#d9542f', '#9c1f47', '#4a0d3c'],
};

export const dark: Palette = {
  dark: true,
  ink: '#e8ecf2',
  muted: '#a9b2c0',
  faint: '#78828f',
  line: '#2f3744',
  card: '#1a202a',
  accent: '#6cb5f4',
  series: okabeDark,
  kinds: { compute: '#4ba3e3', backward: '#2c6f9f', communication: '#f2a541', latency: '#e39bc4', software: '#78828f' },
  scale: ['#3a4452', '#6a3d6e', '#b0406b', '#e5654a', '#f7ab4a', '#fff3b8'],
};

export const kBuckets = 24;

function channels(hex: string): [number, number, number] {
  const v = parseInt(hex.slice(1), 16);
  return [(v >> 16) & 255, (v >> 8) & 255, v & 255];
}

// The colour of a share of capacity between 0 and 1.
export function heat(palette: Palette, share: number): string {
  const s = Math.max(0, Math.min(1, share)) * (palette.scale.length - 1);
  const i = Math.min(palette.scale.length - 2, Math.floor(s));
  const a = channels(palette.scale[i]!), b = channels(palette.scale[i + 1]!);
  const mix = (k: 0 | 1 | 2) => Math.round(a[k] + (b[k] - a[k]) * (s - i));
  return `rgb(${mix(0)},${mix(1)},${mix(2)})`;
}

export const bucketOf = (share: number): number => Math.round(Math.max(0, Math.min(1, share)) * (kBuckets - 1));
export const bucketColours = (palette: Palette): string[] =>
  Array.from({ length: kBuckets }, (_, i) => heat(palette, i / (kBuckets - 1)));

// Relative luminance, to choose black or white letters.
export function luminance(rgb: string): number {
  const parts = rgb.startsWith('#') ? channels(rgb) : (rgb.match(/\d+/g) ?? []).map(Number);
  const linear = parts.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0]! + 0.7152 * linear[1]! + 0.0722 * linear[2]!;
}
