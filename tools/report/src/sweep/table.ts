// SPDX-License-Identifier: Apache-2.0
// The table of a sweep as `weft sweep page` puts it into the page, and what is asked of it: which points, which lines, which of them
// nothing beats.
import { bytes, count, flops, gbs, percent, seconds } from '../format';

export interface Axis {
  name: string;
  labels: string[];
  numbers: number[] | null;
  unit: string;
}

export type Value = number | string | boolean | null;

export interface Point {
  point: number;
  at: number[]; // index of each axis' value
  outputs: Value[]; // empty for a failed one
  error: string;
}

export interface Table {
  name: string;
  question: string;
  planned: number;
  axes: Axis[];
  outputs: string[];
  pareto?: { minimise?: string[]; maximise?: string[] };
  points: Point[];
}

export function readTable(data: unknown): Table {
  const json = (data as Record<string, unknown>[])[0];
  if (!json || json['kind'] !== 'sweep-table') throw new Error('this page holds no table of a sweep');
  const points = (json['points'] as [number, number[], Value[] | string][]).map(([point, at, found]) => ({
    point, at, outputs: typeof found === 'string' ? [] : found, error: typeof found === 'string' ? found : '',
  }));
  return { ...(json as unknown as Table), points };
}

// A column is an axis or an output.
export interface Column {
  name: string;
  axis: Axis | null;
  index: number;
  numeric: boolean;
  follows: boolean; // moves in step with an axis before it, so that choosing it says nothing more
}

// Whether two axes have one value of each for one of the other.
function inStep(table: Table, a: number, b: number): boolean {
  const there = new Map<number, number>(), back = new Map<number, number>();
  return table.points.every((p) => {
    const [i, j] = [p.at[a]!, p.at[b]!];
    if (!there.has(i)) there.set(i, j);
    if (!back.has(j)) back.set(j, i);
    return there.get(i) === j && back.get(j) === i;
  });
}

export function columnsOf(table: Table): Column[] {
  const axes = table.axes.map((axis, index) => ({
    name: axis.name, axis, index, numeric: axis.numbers !== null,
    follows: axis.labels.length > 1 && table.axes.slice(0, index).some((other, i) => other.labels.length > 1 && inStep(table, i, index)),
  }));
  const outputs = table.outputs.map((name, index) => ({
    name, axis: null, index, numeric: table.points.some((p) => typeof p.outputs[index] === 'number'), follows: false,
  }));
  return [...axes, ...outputs];
}

export const numberAt = (column: Column, p: Point): number | null => {
  if (column.axis) return column.axis.numbers?.[p.at[column.index]!] ?? null;
  const value = p.outputs[column.index];
  return typeof value === 'number' ? value : null;
};

export const labelAt = (column: Column, p: Point): string => {
  if (column.axis) return column.axis.labels[p.at[column.index]!]!;
  const value = p.outputs[column.index];
  if (value === null || value === undefined) return '–';
  return typeof value === 'number' ? formatOf(column)(value) : String(value);
};

// By unit, or by what the name of an output ends with.
export function formatOf(column: Column): (value: number) => string {
  if (column.axis) {
    if (column.axis.unit === 's') return seconds;
    if (column.axis.unit === 'B') return bytes;
    if (column.axis.unit === 'b/s') return (v) => gbs(v / 8e9);
    if (column.axis.unit === 'FLOP/s') return flops;
    return column.axis.unit === '' ? count : (v) => `${count(v)} ${column.axis!.unit}`;
  }
  const n = column.name;
  if (/(_gbs|bandwidth)$/.test(n)) return gbs;
  if (/tokens_per_s$|requests_per_s$/.test(n)) return (v) => `${count(v)}/s`;
  if (/flops?_per_s/.test(n)) return flops;
  if (/(_s|_time|^time)$/.test(n)) return seconds;
  if (/bytes$/.test(n)) return bytes;
  if (/(mfu|fraction|utili[sz]ation|share|bubble)$/.test(n)) return percent;
  return count;
}

// Chosen values of axes (by index) and of outputs that are words or true or false (by text); '' is all.
export type Filter = Record<string, string>;

export const filterable = (table: Table, column: Column): string[] =>
  column.follows ? [] : column.axis ? column.axis.labels : column.numeric ? [] : [...new Set(table.points.filter((p) => p.error === '').map((p) => labelAt(column, p)))].slice(0, 40);

export const kept = (columns: Column[], filter: Filter, p: Point): boolean =>
  columns.every((c) => !filter[c.name] || labelAt(c, p) === filter[c.name]);

export type Best = 'min' | 'max';

// The points that no other beats in both: better in one and no worse in the other. In the order of x.
export function front(points: Point[], x: Column, y: Column, bestX: Best, bestY: Best): Point[] {
  const sign = (best: Best) => (best === 'min' ? 1 : -1);
  const valued = points.flatMap((p) => {
    const a = numberAt(x, p), b = numberAt(y, p);
    return a === null || b === null ? [] : [{ p, a: a * sign(bestX), b: b * sign(bestY) }];
  });
  valued.sort((m, n) => m.a - n.a || m.b - n.b || m.p.point - n.p.point);
  const out: typeof valued = [];
  for (const v of valued) {
    const last = out.at(-1);
    if (!last || v.b < last.b || (v.b === last.b && v.a === last.a)) out.push(v);
  }
  return out.map((v) => v.p);
}

// A logarithmic scale where values span more than this.
const kWide = 30;
export function spansWide(values: number[]): boolean {
  const least = Math.min(...values), most = Math.max(...values);
  return values.length > 1 && least > 0 && most / least > kWide;
}

export interface Line {
  name: string;
  points: { p: Point; x: number; y: number }[];
}
export interface Panel {
  name: string;
  lines: Line[];
}

// Panels by one axis, in them lines by another, along a third.
export function panels(points: Point[], x: Column, y: Column, line: Column | null, panel: Column | null): Panel[] {
  const out: Panel[] = [];
  const order = (column: Column | null, p: Point) => (column?.axis ? p.at[column.index]! : 0);
  const sorted = [...points].sort((a, b) => order(panel, a) - order(panel, b) || order(line, a) - order(line, b) || numberAt(x, a)! - numberAt(x, b)!);
  for (const p of sorted) {
    const a = numberAt(x, p), b = numberAt(y, p);
    if (a === null || b === null) continue;
    const panelName = panel ? labelAt(panel, p) : '', lineName = line ? labelAt(line, p) : '';
    let here = out.at(-1);
    if (!here || here.name !== panelName) out.push((here = { name: panelName, lines: [] }));
    let at = here.lines.at(-1);
    if (!at || at.name !== lineName) here.lines.push((at = { name: lineName, points: [] }));
    at.points.push({ p, x: a, y: b });
  }
  return out;
}
