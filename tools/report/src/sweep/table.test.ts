// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { columnsOf, filterable, formatOf, front, kept, labelAt, panels, readTable, spansWide, type Column, type Point } from './table';

const table = readTable([{
  kind: 'sweep-table', name: 't', question: '', planned: 7,
  axes: [{ name: 'gpus', labels: ['8', '16', '32'], numbers: [8, 16, 32], unit: '' }, { name: 'net', labels: ['ib', 'roce'], numbers: null, unit: '' }],
  outputs: ['time_s', 'fits'],
  points: [[0, [0, 0], [4, true]], [1, [0, 1], [5, true]], [2, [1, 0], [2, true]], [3, [1, 1], [6, false]], [4, [2, 0], [2, true]], [5, [2, 1], 'it broke']],
}]);
const columns = columnsOf(table);
const [gpus, net, time, fits] = columns as [Column, Column, Column, Column];
const good = table.points.filter((p) => p.error === '');
const numbers = (points: Point[]) => points.map((p) => p.point);

describe('the table of a sweep', () => {
  it('knows its columns', () => {
    expect(columns.map((c) => [c.name, c.numeric])).toEqual([['gpus', true], ['net', false], ['time_s', true], ['fits', false]]);
    expect(labelAt(net, good[1]!)).toBe('roce');
    expect(labelAt(time, good[0]!)).toBe('4 s');
    expect(labelAt(fits, good[3]!)).toBe('false');
    expect(filterable(table, fits)).toEqual(['true', 'false']);
    expect(table.points[5]!.error).toBe('it broke');
  });
  it('formats by unit and by name', () => {
    expect(formatOf({ ...gpus, axis: { ...gpus.axis!, unit: 'B' } })(1048576)).toBe('1 MiB');
    expect(formatOf({ name: 'busbw_gbs', axis: null, index: 0, numeric: true, follows: false })(12.5)).toBe('12.5 GB/s');
    expect(formatOf({ name: 'mfu', axis: null, index: 0, numeric: true, follows: false })(0.41)).toBe('41 %');
    expect(formatOf({ name: 'tokens_per_s', axis: null, index: 0, numeric: true, follows: false })(53894.7)).toBe('53,895/s');
  });
  it('sees axes that move in step', () => {
    const paired = readTable([{ kind: 'sweep-table', name: '', question: '', planned: 3, outputs: [],
      axes: [{ name: 'a', labels: ['1', '2'], numbers: [1, 2], unit: '' }, { name: 'b', labels: ['x', 'y'], numbers: null, unit: '' }, { name: 'c', labels: ['u', 'v'], numbers: null, unit: '' }],
      points: [[0, [0, 1, 0], []], [1, [1, 0, 0], []], [2, [1, 0, 1], []]] }]);
    expect(columnsOf(paired).map((c) => c.follows)).toEqual([false, true, false]);
  });
  it('filters', () => {
    expect(numbers(good.filter((p) => kept(columns, { net: 'ib', fits: '' }, p)))).toEqual([0, 2, 4]);
  });
  it('refuses other data', () => {
    expect(() => readTable([])).toThrow();
    expect(() => readTable([{ kind: 'report' }])).toThrow();
  });
});

describe('a front', () => {
  it('holds what nothing beats', () => {
    expect(numbers(front(good, gpus, time, 'min', 'min'))).toEqual([0, 2]);
    expect(numbers(front(good, gpus, time, 'max', 'min'))).toEqual([4]);
    expect(numbers(front(good, gpus, time, 'min', 'max'))).toEqual([1, 3]);
    expect(numbers(front(good, gpus, time, 'max', 'max'))).toEqual([4, 3]);
  });
  it('equals its definition on random points', () => {
    let seed = 7;
    const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
    const x: Column = { name: 'x', axis: null, index: 0, numeric: true, follows: false }, y: Column = { name: 'y', axis: null, index: 1, numeric: true, follows: false };
    for (let round = 0; round < 50; ++round) {
      const points = Array.from({ length: 40 }, (_, point) => ({ point, at: [], error: '', outputs: [Math.floor(random() * 12), Math.floor(random() * 12)] }));
      const beats = (a: Point, b: Point) => {
        const [ax, ay] = a.outputs as number[], [bx, by] = b.outputs as number[];
        return ax! <= bx! && ay! >= by! && (ax! < bx! || ay! > by!);
      };
      const expected = points.filter((p) => !points.some((q) => beats(q, p))).map((p) => p.point).sort((a, b) => a - b);
      expect(numbers(front(points, x, y, 'min', 'max')).sort((a, b) => a - b)).toEqual(expected);
    }
  });
});

describe('small multiples', () => {
  it('are panels of lines in the order of the axes', () => {
    const made = panels(good, gpus, time, null, net);
    expect(made.map((p) => p.name)).toEqual(['ib', 'roce']);
    expect(made[0]!.lines[0]!.points.map((q) => [q.x, q.y])).toEqual([[8, 4], [16, 2], [32, 2]]);
    expect(panels(good, gpus, time, net, null)[0]!.lines.map((l) => l.name)).toEqual(['ib', 'roce']);
  });
  it('take a logarithmic scale for wide ranges', () => {
    expect(spansWide([1, 100])).toBe(true);
    expect(spansWide([1, 8])).toBe(false);
    expect(spansWide([0, 100])).toBe(false);
  });
});
