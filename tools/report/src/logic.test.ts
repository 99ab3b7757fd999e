// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { differences } from './compare';
import { leaves, search } from './config_tree';
import { bytes, change, count, flops, gbs, percent, seconds, ticks } from './format';
import { bucketColours, dark, heat, kBuckets, light, luminance } from './palette';
import { at, curves, limitedBy, readDocuments, shortName, type Run } from './report';
import { busy, indexLanes, sliceAt } from './timeline';
import { portions, spelt } from './training';
import type { TimelineView } from './report';

describe('numbers for people', () => {
  it('times', () => {
    expect(seconds(0.003987201994)).toBe('3.987 ms');
    expect(seconds(1)).toBe('1 s');
    expect(seconds(0.00099999999)).toBe('1 ms');
    expect(seconds(9.3e-8)).toBe('93 ns');
    expect(seconds(0)).toBe('0 s');
    expect(seconds(2e-12)).toBe('2 ps');
    expect(seconds(172800)).toBe('2 d');
  });
  it('sizes', () => {
    expect(bytes(1073741824)).toBe('1 GiB');
    expect(bytes(469762048)).toBe('448 MiB');
    expect(bytes(1000)).toBe('1 kB');
    expect(bytes(1487368)).toBe('1.487 MB');
    expect(bytes(0)).toBe('0 B');
    expect(bytes(4541513728)).toBe('4.542 GB');
    expect(bytes(1000000)).toBe('1 MB');
  });
  it('rates, shares, changes', () => {
    expect(gbs(471.2698)).toBe('471.3 GB/s');
    expect(flops(4.2e14)).toBe('420 TFLOP/s');
    expect(percent(0.7574)).toBe('75.7 %');
    expect(count(691464)).toBe('691,464');
    expect(change(2, 1)).toBe('−50 %');
    expect(change(1, 1.00001)).toBe('same');
    expect(change(0, 3)).toBe('new');
  });
  it('ticks are round and inside', () => {
    expect(ticks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6000000000000001, 0.8, 1]);
    for (const t of ticks(0.013, 0.0171, 6)) expect(t).toBeGreaterThanOrEqual(0.0129);
    expect(ticks(3, 3, 5)).toEqual([3]);
  });
});

describe('colours', () => {
  it('lightness changes steadily with load, so that it reads without colour', () => {
    for (const palette of [light, dark]) {
      const seen = bucketColours(palette).map(luminance);
      const sorted = [...seen].sort((a, b) => (palette.dark ? a - b : b - a));
      expect(seen).toEqual(sorted);
      expect(bucketColours(palette)).toHaveLength(kBuckets);
    }
    expect(heat(light, -1)).toBe(heat(light, 0));
    expect(heat(light, 7)).toBe(heat(light, 1));
  });
  it('text stands out from the card', () => {
    for (const palette of [light, dark]) {
      const [a, b] = [luminance(palette.muted), luminance(palette.card)].sort((x, y) => y - x) as [number, number];
      expect((a + 0.05) / (b + 0.05)).toBeGreaterThan(4.5);
    }
  });
});

const run = (more: Partial<Run>): Run => ({
  weft: { version: '1', schema: 1 }, scenario: 's', fabric: 'f', fidelity: 'fluid', seed: 1, fingerprint: 'x', time_s: 2, bound_s: 1, bound_by: 'l', events: 1,
  wall_s: 0, peak_rss_bytes: 0, jobs: [], flows: [], links: [], left_out: { flows: 0, links: 0 }, critical_path: [], bottlenecks: [],
  evidence: { measured: 0, datasheet: 0, assumed: 0 }, network: {}, warnings: [], effective: {}, ...more,
});

describe('documents', () => {
  it('takes reports bare and with a file, and tables of sizes; names differ', () => {
    const found = readDocuments([run({}), { file: 'runs/a/report.json', report: run({}) }, { file: 't.json', report: { collective: 'all_reduce', ranks: 8, rows: [] } }, 3, null, { x: 1 }]);
    expect(found.map((d) => d.name)).toEqual(['s #1', 's (a)', 't']);
    expect(readDocuments('no')).toEqual([]);
  });
  it('a file is known by its folder or its stem', () => {
    expect(shortName('runs/a/report.json')).toBe('a');
    expect(shortName('./b.json')).toBe('b');
    expect(shortName('')).toBe('');
  });
  it('follows JSON pointers', () => {
    expect(at({ a: [{ 'b/c': 4 }] }, '/a/0/b~1c')).toBe(4);
    expect(at({ a: 1 }, '/a/b/c')).toBeUndefined();
  });
  it('the first bottleneck is one that a faster machine would relieve', () => {
    const b = [{ resource: 'x', share: 1, gain_if_infinite_s: 0 }, { resource: 'y', share: 0.5, gain_if_infinite_s: 1 }, { resource: 'z', share: 0.4, gain_if_infinite_s: null }];
    expect(limitedBy(run({ bottlenecks: b }))?.resource).toBe('y');
    expect(limitedBy(run({}))).toBeUndefined();
  });
  it('curves join runs that differ in size only, and keep measurements apart', () => {
    const job = { name: 'j', kind: 'collective', collective: 'all_reduce', algorithm: 'ring', ranks: 8, start_s: 0, finish_s: 0, iterations: 1 };
    const found = curves(readDocuments([
      run({ jobs: [{ ...job, bytes: 200, time_s: 2, busbw_gbs: 3 }] }), run({ jobs: [{ ...job, bytes: 100, time_s: 1, busbw_gbs: 2 }] }),
      { collective: 'all_reduce', ranks: 8, rows: [{ bytes: 8, measured_us: 10, predicted_us: 11, measured_busbw_gbs: 1, predicted_busbw_gbs: 2 }] },
    ]));
    expect(found.map((c) => [c.measured, c.points.map((p) => p.bytes)])).toEqual([[false, [100, 200]], [false, [8]], [true, [8]]]);
    expect(found[2]!.points[0]!.time_s).toBeCloseTo(1e-5);
    const twice = curves(readDocuments([1, 2].map((t) => run({ jobs: [{ ...job, bytes: 100, time_s: t, busbw_gbs: 2 }] }))));
    expect(twice.map((c) => c.points.length)).toEqual([1, 1]);
  });
});

describe('configuration', () => {
  const json = { fabric: { use: 'dgx2', links: [1, 2], servers: [{ n: 4 }] }, name: 'x', 'a/b': {} };
  it('every value has its pointer', () => {
    expect(leaves(json).map((l) => l.pointer)).toEqual(['/fabric/use', '/fabric/links', '/fabric/servers/0/n', '/name', '/a~1b']);
  });
  it('search takes words in any order, in pointer or value', () => {
    expect(search(leaves(json), 'DGX2 fabric').map((l) => l.pointer)).toEqual(['/fabric/use']);
    expect(search(leaves(json), '  ')).toHaveLength(5);
    expect(search(leaves(json), 'nowhere')).toHaveLength(0);
  });
  it('differences leave out names and expectations', () => {
    expect(differences([{ name: 'a', x: 1, y: 1 }, { name: 'b', x: 2, y: 1, z: 0 }])).toEqual([
      { pointer: '/x', values: ['1', '2'] }, { pointer: '/z', values: [undefined, '0'] },
    ]);
  });
});

describe('timeline', () => {
  const view: TimelineView = {
    jobs: ['j'], labels: ['a'], kinds: ['compute', 'communication'], lanes: [{ name: 'x', job: 0 }, { name: 'empty', job: 0 }, { name: 'y', job: 0 }],
    lane: [0, 0, 2], start_s: [0, 2, 1], duration_s: [1, 1, 4], kind: [0, 1, 1], label: [0, 0, 0], left_out: 0,
  };
  const index = indexLanes(view);
  it('finds the slice under a pointer', () => {
    expect(index).toEqual({ first: [0, 2, 2, 3], begin: 0, end: 5 });
    expect(sliceAt(view, index, 0, 0.5, 0)).toBe(0);
    expect(sliceAt(view, index, 0, 1.5, 0)).toBe(-1);
    expect(sliceAt(view, index, 0, 1.5, 0.6)).toBe(1);
    expect(sliceAt(view, index, 1, 1, 9)).toBe(-1);
    expect(sliceAt(view, index, 2, 4.9, 0)).toBe(2);
  });
  it('adds up what a lane did', () => expect(busy(view, index, 0)).toEqual([1, 1]));
});

it('a step is cut into parts that add up to it', () => {
  const parts = portions({ name: 't', kind: 'training', ranks: 8, bytes: 0, time_s: 10, start_s: 0, finish_s: 10, iterations: 1, step_time_s: 10, compute_s: 6,
    exposed_comm_s: { tp: 1, dp: 2, pp: 0 }, bubble_fraction: 0.1 });
  expect(parts.map((p) => p.name)).toEqual(['compute', 'tensor parallel', 'data parallel', 'bubble']);
  expect(parts.reduce((n, p) => n + p.seconds, 0)).toBeCloseTo(10);
});

it('parts of a plan are spelt', () => {
  expect(spelt({ grad_reduce: true, tp: false })).toBe('grad reduce');
  expect(spelt({ compute: 'bf16' })).toBe('compute bf16');
  expect(spelt({ tp: false })).toBe('none');
  expect(spelt(4)).toBe('4');
});
