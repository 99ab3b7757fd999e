// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { homes, networkLayout, prefixOf } from './fabric/network_layout';
import { cubeMesh, serverLayout, switchPlanes } from './fabric/server_layout';
import type { FabricView, ServerType } from './report';

type Cable = [number, number, number, number];

// DGX-1: two fully meshed fours, joined pair by pair.
const dgx1: ServerType = {
  name: 'dgx1',
  nodes: [0, 1, 2, 3, 4, 5, 6, 7].map((i) => [`gpu${i}`, 'gpu']),
  cables: [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3], [4, 5], [4, 6], [4, 7], [5, 6], [5, 7], [6, 7], [0, 4], [1, 5], [2, 6], [3, 7]].map(
    ([a, b]) => [a!, b!, 1, 0] as Cable),
};

function dgx2(): ServerType {
  const nodes: [string, string][] = [];
  for (let i = 0; i < 16; ++i) nodes.push([`gpu${i}`, 'gpu']);
  for (let i = 0; i < 12; ++i) nodes.push([`nvswitch${i}`, 'nvswitch']);
  nodes.push(['cpu0', 'cpu'], ['cpu1', 'cpu']);
  const cables: Cable[] = [];
  for (let g = 0; g < 16; ++g) for (let s = 0; s < 6; ++s) cables.push([g, 16 + s + (g < 8 ? 0 : 6), 1, 0]);
  for (let s = 0; s < 6; ++s) cables.push([16 + s, 22 + s, 8, 0]);
  for (let g = 0; g < 16; ++g) cables.push([g, g < 8 ? 28 : 29, 1, 0]);
  return { name: 'dgx2', nodes, cables };
}

describe('server', () => {
  it('a cube mesh is drawn as two faces with parallel edges', () => {
    const cube = cubeMesh(dgx1)!;
    expect(cube.front).toEqual([0, 1, 2, 3]);
    expect(cube.back).toEqual([4, 5, 6, 7]);
    const { at } = serverLayout(dgx1);
    for (let i = 0; i < 4; ++i) {
      expect(at[i + 4]!.x - at[i]!.x).toBeCloseTo(at[4]!.x - at[0]!.x);
      expect(at[i + 4]!.y - at[i]!.y).toBeCloseTo(at[4]!.y - at[0]!.y);
    }
  });
  it('a missing edge is no cube', () => {
    expect(cubeMesh({ ...dgx1, cables: dgx1.cables.slice(1) })).toBeUndefined();
  });
  it('two boards of NVSwitches are two planes, apart and not overlapping', () => {
    const type = dgx2();
    const planes = switchPlanes(type);
    expect(planes.map((p) => p.switches.length)).toEqual([6, 6]);
    expect(planes[1]!.gpus).toEqual([8, 9, 10, 11, 12, 13, 14, 15]);
    const { at, planes: boxes } = serverLayout(type);
    expect(boxes).toHaveLength(2);
    expect(boxes[0]!.x + boxes[0]!.width).toBeLessThan(boxes[1]!.x);
    for (let s = 16; s < 22; ++s) expect(at[s]!.x).toBeLessThan(at[s + 6]!.x);
  });
  it('no two parts lie on each other and all lie inside', () => {
    for (const type of [dgx1, dgx2()]) {
      const layout = serverLayout(type);
      layout.at.forEach((p, i) => {
        expect(p.x).toBeGreaterThanOrEqual(0);
        expect(p.x).toBeLessThanOrEqual(layout.width);
        expect(p.y).toBeGreaterThanOrEqual(0);
        expect(p.y).toBeLessThanOrEqual(layout.height);
        layout.at.forEach((q, j) => {
          if (i < j) expect(Math.hypot(p.x - q.x, p.y - q.y)).toBeGreaterThan(0.5);
        });
      });
    }
  });
});

function leafSpine(servers: number, leaves: number, spines: number, everyLeaf = false): FabricView {
  const a: number[] = [], b: number[] = [];
  for (let s = 0; s < servers; ++s) {
    for (let l = 0; l < leaves; ++l) {
      if (!everyLeaf && l !== Math.floor((s * leaves) / servers)) continue;
      a.push(s);
      b.push(servers + l);
    }
  }
  for (let l = 0; l < leaves; ++l) for (let s = 0; s < spines; ++s) { a.push(servers + l); b.push(servers + leaves + s); }
  const zeros = a.map(() => 0);
  return {
    gpus: servers, nodes: 0, links: 0, types: [], kinds: [],
    servers: { type: Array(servers).fill(0), load: Array(servers).fill(0), details: [] },
    switches: {
      name: [...Array(leaves).keys()].map((i) => `leaf${i}`).concat([...Array(spines).keys()].map((i) => `spine${i}`)),
      level: [...Array(leaves).fill(1), ...Array(spines).fill(2)], load: Array(leaves + spines).fill(0),
    },
    cables: { a, b, count: a.map(() => 1), kind: zeros, up: zeros, down: zeros, left_out: 0 },
  };
}

describe('network', () => {
  it('tiers stand above each other, servers below their leaf', () => {
    const view = leafSpine(16, 4, 2), layout = networkLayout(view);
    const level = (i: number) => layout.at[i]!.y;
    expect(level(20)).toBeLessThan(level(16));
    expect(level(16)).toBeLessThan(level(0));
    expect(homes(view)[5]).toBe(17);
    for (let s = 0; s < 16; ++s) {
      const nearest = [0, 1, 2, 3].sort((x, y) => Math.abs(layout.at[16 + x]!.x - layout.at[s]!.x) - Math.abs(layout.at[16 + y]!.x - layout.at[s]!.x))[0];
      expect(nearest).toBe(Math.floor(s / 4));
    }
    expect(layout.tiers.map((t) => t.label)).toEqual(['2 spines', '4 leaves', '16 servers']);
  });
  it('lays out 2,048 servers of eight rails quickly, each in a place of its own', () => {
    const view = leafSpine(2048, 64, 32, true);
    const start = performance.now();
    const layout = networkLayout(view);
    expect(performance.now() - start).toBeLessThan(1000);
    expect(new Set(layout.at.map((p) => `${p.x.toFixed(3)},${p.y.toFixed(3)}`)).size).toBe(layout.at.length);
    expect(Math.max(...layout.at.map((p) => p.x))).toBeLessThanOrEqual(layout.width);
  });
  it('a torus is a grid', () => {
    const view = leafSpine(6, 6, 0);
    view.switches.name = view.switches.name.map((_, i) => `torus${i}`);
    const { at } = networkLayout(view, [3, 2]);
    expect(at[6]!.y).toBe(at[7]!.y);
    expect(at[6]!.x).toBe(at[9]!.x);
  });
  it('knows groups by the first part of a name', () => {
    expect(prefixOf('rail3/leaf2')).toBe('rail3');
    expect(prefixOf('leaf2')).toBe('');
  });
});
