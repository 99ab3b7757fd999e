// SPDX-License-Identifier: Apache-2.0
// Where the parts of a server are drawn. Processors at the rim, PCIe switches and NICs further in, GPUs next, and what joins the
// GPUs in the middle: NVSwitches in planes (one below the GPUs; two between them, as a DGX-2 has), or the mesh itself, drawn as
// a cube where it is two fully meshed halves joined pair by pair, as in a DGX-1.
import type { ServerType } from '../report';

export interface Point {
  x: number;
  y: number;
}
export interface ServerLayout {
  at: Point[];
  width: number;
  height: number;
  planes: { label: string; x: number; y: number; width: number; height: number }[];
}

const kStep = 1.5, kRow = 1.7, kMostInRow = 24;
const kTurned = 0.72; // parts are broader than high
const kLabel = 0.8;

type Graph = { kind: string[]; near: Set<number>[] };

function graphOf(type: ServerType): Graph {
  const near = type.nodes.map(() => new Set<number>());
  for (const [a, b] of type.cables) {
    near[a]!.add(b);
    near[b]!.add(a);
  }
  return { kind: type.nodes.map(([, kind]) => kind), near };
}

const of = (g: Graph, kind: string): number[] => g.kind.flatMap((k, i) => (k === kind ? [i] : []));

// NVSwitches that reach the same GPUs form a plane.
export function switchPlanes(type: ServerType): { switches: number[]; gpus: number[] }[] {
  const g = graphOf(type);
  const planes = new Map<string, { switches: number[]; gpus: number[] }>();
  for (const s of of(g, 'nvswitch')) {
    const gpus = [...g.near[s]!].filter((n) => g.kind[n] === 'gpu').sort((a, b) => a - b);
    const key = gpus.join();
    const plane = planes.get(key) ?? { switches: [], gpus };
    plane.switches.push(s);
    planes.set(key, plane);
  }
  return [...planes.values()];
}

// Two halves, each fully meshed, joined pair by pair: the opposite corners' order, or nothing.
export function cubeMesh(type: ServerType): { back: number[]; front: number[] } | undefined {
  const g = graphOf(type);
  const gpus = of(g, 'gpu');
  if (gpus.length !== 8) return undefined;
  const linked = (a: number, b: number) => g.near[a]!.has(b);
  const half = gpus.slice(0, 4), other = gpus.slice(4);
  const meshed = (four: number[]) => four.every((a) => four.every((b) => a === b || linked(a, b)));
  if (!meshed(half) || !meshed(other)) return undefined;
  const partners = half.map((a) => other.filter((b) => linked(a, b)));
  if (!partners.every((p) => p.length === 1) || new Set(partners.flat()).size !== 4) return undefined;
  return { front: half, back: partners.map((p) => p[0]!) };
}

export function serverLayout(type: ServerType): ServerLayout {
  const g = graphOf(type);
  const at: Point[] = type.nodes.map(() => ({ x: 0, y: 0 }));
  const gpus = of(g, 'gpu');
  const planes = switchPlanes(type);
  const boxes: ServerLayout['planes'] = [];
  const two = planes.length === 2 && planes[0]!.gpus.every((x) => !planes[1]!.gpus.includes(x));
  const cube = planes.length === 0 ? cubeMesh(type) : undefined;
  const mesh = planes.length === 0 && gpus.some((a) => [...g.near[a]!].some((b) => g.kind[b] === 'gpu'));

  // Which side a part belongs to: that of the GPUs nearest to it. All GPUs of a fabric with one plane are on side 0.
  const side = new Map<number, number>();
  for (const x of gpus) side.set(x, two && planes[1]!.gpus.includes(x) ? 1 : 0);
  const spread = () => {
    for (let round = 0; round < type.nodes.length && side.size < type.nodes.length; ++round) {
      const found: [number, number][] = [];
      type.nodes.forEach((_, n) => {
        if (side.has(n)) return;
        const votes = [...g.near[n]!].flatMap((m) => (side.has(m) ? [side.get(m)!] : []));
        if (votes.length > 0) found.push([n, votes.filter((v) => v === 1).length * 2 > votes.length ? 1 : 0]);
      });
      if (found.length === 0) break;
      for (const [n, s] of found) side.set(n, s);
    }
  };
  planes.forEach((p, i) => p.switches.forEach((s) => side.set(s, two ? i : 0)));
  spread();

  const depth = hostDepth(g, gpus);
  const widest = Math.max(4, ...[...Array(two ? 2 : 1).keys()].map((s) =>
    Math.min(kMostInRow, gpus.filter((x) => side.get(x) === s).length)), ...planes.map((p) => Math.min(kMostInRow, p.switches.length)));
  const width = widest * kStep + 1;

  // A row, wrapped when long; returns how many lines it took.
  const row = (nodes: number[], y: number, direction: number, span = width): number => {
    const lines = Math.max(1, Math.ceil(nodes.length / kMostInRow));
    const per = Math.ceil(nodes.length / lines);
    nodes.forEach((n, i) => {
      const line = Math.floor(i / per), inLine = Math.min(per, nodes.length - line * per);
      at[n] = { x: ((i % per) + 0.5) * (span / inLine) + (width - span) / 2, y: y + direction * line * kRow };
    });
    return nodes.length === 0 ? 0 : lines;
  };
  const order = (nodes: number[], towards: (n: number) => boolean): number[] => {
    const weight = (n: number) => {
      const xs = [...g.near[n]!].filter(towards).map((m) => at[m]!.x);
      return xs.length === 0 ? width / 2 : xs.reduce((a, b) => a + b, 0) / xs.length;
    };
    return nodes.map((n, i) => ({ n, w: weight(n), i })).sort((a, b) => a.w - b.w || a.i - b.i).map((e) => e.n);
  };

  let top = 0, bottom = 0;
  const outwards = (s: number, start: number): number => {
    const direction = s === 0 ? -1 : 1;
    let y = start;
    for (let d = 1; d <= depth.deepest; ++d) {
      const members = type.nodes.flatMap((_, n) => (side.get(n) === s && depth.of[n] === d && g.kind[n] !== 'nvswitch' ? [n] : []));
      if (members.length === 0) continue;
      const sorted = order(members, (m) => depth.of[m]! < d && g.kind[m] !== 'nvswitch');
      y += direction * kRow * row(sorted, y + direction * kRow, direction);
    }
    return y;
  };

  if (cube) {
    const size = Math.max(5, width * 0.42), dx = size * 0.42, dy = size * 0.3;
    const left = (width - size - dx) / 2;
    const corners = [[0, 0], [1, 0], [1, 1], [0, 1]] as const;
    // Faces turned so that the order around the square follows the board's links.
    cube.back.forEach((n, i) => (at[n] = { x: left + dx + corners[i]![0] * size, y: corners[i]![1] * size }));
    cube.front.forEach((n, i) => (at[n] = { x: left + corners[i]![0] * size, y: dy + corners[i]![1] * size }));
    top = outwards(0, -0.4);
    bottom = size + dy;
  } else if (mesh && gpus.length > 2) {
    const radius = Math.max(2, gpus.length * 0.42);
    gpus.forEach((n, i) => {
      const angle = -Math.PI / 2 + ((i + 0.5) * 2 * Math.PI) / gpus.length;
      at[n] = { x: width / 2 + radius * 1.25 * Math.cos(angle), y: radius + radius * Math.sin(angle) };
    });
    top = outwards(0, -0.4);
    bottom = 2 * radius;
  } else if (two) {
    const far = [0, 2.6, 4.9, 7.5] as const;
    row(gpus.filter((x) => side.get(x) === 0), far[0], 1);
    row(planes[0]!.switches, far[1], 1, width * 0.86);
    row(planes[1]!.switches, far[2], 1, width * 0.86);
    row(gpus.filter((x) => side.get(x) === 1), far[3], 1);
    top = outwards(0, far[0]);
    bottom = outwards(1, far[3]);
    planes.forEach((_, i) => boxes.push({ label: `board ${i}`, x: 0, y: far[2 * i as 0 | 2]! - 0.8, width, height: far[1] + 1.6 }));
  } else {
    const lines = row(gpus, 0, 1);
    bottom = (lines - 1) * kRow;
    for (const plane of planes) {
      const used = row(plane.switches, bottom + kRow * 1.25, 1, width * 0.86);
      bottom += kRow * 1.25 + (used - 1) * kRow;
    }
    top = outwards(0, 0);
  }
  const lowest = Math.min(top, ...at.map((p) => p.y)), highest = Math.max(bottom, ...at.map((p) => p.y));
  for (const p of at) p.y += 1 - lowest;
  for (const b of boxes) b.y += 1 - lowest;
  const height = highest - lowest + 2;
  if (!two) return { at, width, height, planes: boxes };
  // Two boards face each other from left and right: broad, like the screen.
  return {
    at: at.map((p) => ({ x: p.y, y: p.x * kTurned + kLabel })), width: height, height: width * kTurned + kLabel,
    planes: boxes.map((b) => ({ label: b.label, x: b.y, y: b.x + kLabel, width: b.height, height: b.width * kTurned })),
  };
}

// Steps from the GPUs along host cables; what cannot be reached stands with the farthest.
function hostDepth(g: Graph, gpus: number[]): { of: number[]; deepest: number } {
  const rank: Record<string, number> = { gpu: 0, pcie_switch: 1, nic: 1, cpu: 3, storage: 3, cxl_memory: 4, dram: 4 };
  const depth = g.kind.map((k, i) => (gpus.includes(i) ? 0 : (rank[k] ?? 1)));
  // PCIe switches that only other switches reach are a level further out.
  for (const s of of(g, 'pcie_switch')) {
    const near = [...g.near[s]!];
    if (!near.some((n) => g.kind[n] === 'gpu' || g.kind[n] === 'nic') && near.some((n) => g.kind[n] === 'pcie_switch')) depth[s] = 2;
  }
  // Where NICs hang below switches they get a line of their own, outside of them.
  const switches = of(g, 'pcie_switch');
  for (const n of of(g, 'nic')) {
    if (switches.length === 0) depth[n] = 2;
    else depth[n] = [...g.near[n]!].some((m) => g.kind[m] === 'cpu') ? 4 : 1.5;
  }
  const levels = [...new Set(depth)].sort((a, b) => a - b);
  const index = depth.map((d) => levels.indexOf(d));
  return { of: index, deepest: Math.max(...index) };
}
