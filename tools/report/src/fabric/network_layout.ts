// SPDX-License-Identifier: Apache-2.0
// Where servers and network switches are drawn: in tiers by level; rings and grids for a torus; groups in a circle for a
// dragonfly. Ends are numbered as in the report: servers first, switches behind them.
import type { FabricView } from '../report';
import type { Point } from './server_layout';

export interface Box {
  label: string;
  x: number;
  y: number;
  width: number;
  height: number;
}
export interface NetworkLayout {
  at: Point[];
  size: number[]; // half the edge of what is drawn
  width: number;
  height: number;
  boxes: Box[]; // groups and pods
  tiers: { label: string; y: number }[];
}

const kServer = 1, kSwitch = 1.2, kGap = 0.7;
const kTierNames: Record<number, string> = { 2: 'spine', 3: 'core' };
const kMostColumns = 40;

export function prefixOf(name: string): string {
  const slash = name.indexOf('/');
  return slash < 0 ? '' : name.slice(0, slash);
}

export function networkLayout(view: FabricView, torusDims?: number[]): NetworkLayout {
  const servers = view.servers.type.length;
  if (torusDims && torusDims.reduce((a, b) => a * b, 1) === view.switches.name.length) return torus(view, torusDims);
  const levels = new Set(view.switches.level);
  const groups = new Set(view.switches.name.map(prefixOf));
  if (levels.size <= 1 && groups.size > 1 && !groups.has('') && joinsGroups(view)) return circle(view);
  if (levels.size <= 1 && switchToSwitch(view) && view.switches.name.length > 2) return circle(view);
  return tiers(view, servers);
}

const switchToSwitch = (view: FabricView): boolean => view.cables.a.some((a) => a >= view.servers.type.length);
const joinsGroups = (view: FabricView): boolean => {
  const s = view.servers.type.length;
  return view.cables.a.some((a, i) =>
    a >= s && prefixOf(view.switches.name[a - s]!) !== prefixOf(view.switches.name[view.cables.b[i]! - s]!));
};

// The switch with most cables to each server; -1 for none.
export function homes(view: FabricView): number[] {
  const servers = view.servers.type.length;
  const best = new Array<number>(servers).fill(-1), most = new Array<number>(servers).fill(0);
  view.cables.a.forEach((a, i) => {
    if (a >= servers || view.cables.count[i]! <= most[a]!) return;
    most[a] = view.cables.count[i]!;
    best[a] = view.cables.b[i]!;
  });
  return best;
}

function tiers(view: FabricView, servers: number): NetworkLayout {
  const total = servers + view.switches.name.length;
  const at: Point[] = Array.from({ length: total }, () => ({ x: 0, y: 0 }));
  const size = Array.from({ length: total }, (_, i) => (i < servers ? kServer : kSwitch) / 2);
  const levels = [...new Set(view.switches.level)].sort((a, b) => b - a); // from the top
  const pitch = kSwitch + kGap, serverPitch = kServer + 0.35;
  const rows = levels.map((l) => blocks(view, view.switches.level.flatMap((v, i) => (v === l ? [i] : []))));
  const breadth = (row: number[][]): number => row.reduce((n, b) => n + b.length, 0) * pitch + (row.length - 1) * kGap;
  // What would be a thin line is folded: tiers take several lines beyond this width.
  const most = Math.max(64, Math.sqrt(total) * 2.2);
  const leaves = rows.at(-1) ?? [];
  const placed = (leaves.flat().length <= kMostColumns ? belowLeaves(view, leaves, serverPitch) : undefined) ??
    inLines(view, Math.min(most, Math.max(8, ...rows.map(breadth))), serverPitch);
  const margin = Math.max(2.5, placed.width * 0.1); // for the names of the tiers
  const rise = Math.max(3, placed.width * (rows.length > 2 ? 0.05 : 0.075));
  const boxes: Box[] = [];
  const labels: { label: string; y: number }[] = [];
  let y = 1.4;
  rows.forEach((row, r) => {
    const count = row.reduce((n, b) => n + b.length, 0);
    const folded = breadth(row) > placed.width + 1e-9;
    const share = (placed.width - (row.length - 1) * kGap) / (folded ? row.length : count);
    let x = margin, lines = 1;
    for (const block of row) {
      const width = folded ? share : share * block.length;
      const columns = folded ? Math.max(1, Math.min(block.length, Math.floor(share / pitch))) : block.length;
      const inBlock = Math.ceil(block.length / columns);
      block.forEach((s, i) => (at[servers + s] = { x: x + (((i % columns) + 0.5) * width) / columns, y: y + Math.floor(i / columns) * pitch }));
      const label = prefixOf(view.switches.name[block[0]!]!);
      if (label !== '' && row.length > 1) boxes.push({ label, x, y: y - kSwitch, width, height: 2 * kSwitch + (inBlock - 1) * pitch });
      lines = Math.max(lines, inBlock);
      x += width + kGap;
    }
    labels.push({ label: tierName(count, levels[r]!), y });
    y += (lines - 1) * pitch + rise;
  });
  placed.at.forEach((p, s) => (at[s] = { x: margin + p.x, y: y + p.y }));
  labels.push({ label: `${servers} server${servers === 1 ? '' : 's'}`, y });
  return { at, size, width: placed.width + margin + 1, height: y + placed.depth, boxes, tiers: labels };
}

function tierName(count: number, level: number): string {
  if (level === 1) return `${count} ${count === 1 ? 'leaf' : 'leaves'}`;
  const name = kTierNames[level] ?? 'switch';
  return `${count} ${name}${count === 1 ? '' : name === 'switch' ? 'es' : 's'}`;
}

interface Placed {
  at: Point[]; // of servers, below the first line's middle
  width: number;
  depth: number;
}

// Each leaf's servers in a block of their own below it; only where every server has one leaf and leaves stand in one order.
function belowLeaves(view: FabricView, leaves: number[][], pitch: number): Placed | undefined {
  const servers = view.servers.type.length, order = leaves.flat();
  const leafOf = new Array<number>(servers).fill(-1);
  for (let i = 0; i < view.cables.a.length; ++i) {
    const a = view.cables.a[i]!, b = view.cables.b[i]! - servers;
    if (a >= servers) continue;
    if (leafOf[a] !== -1 && leafOf[a] !== b) return undefined;
    leafOf[a] = b;
  }
  const members = order.map((leaf) => leafOf.flatMap((l, s) => (l === leaf ? [s] : [])));
  if (members.reduce((n, m) => n + m.length, 0) !== servers) return undefined;
  const most = Math.max(1, ...members.map((m) => m.length));
  const across = Math.max(1, Math.min(most, Math.round(Math.sqrt((most * 2.2) / order.length + most / 4))));
  const block = Math.max(across * pitch + 0.5, kSwitch + kGap);
  const at: Point[] = Array.from({ length: servers }, () => ({ x: 0, y: 0 }));
  members.forEach((list, l) => list.forEach((s, i) => {
    const line = Math.floor(i / across), count = Math.min(across, list.length - line * across);
    at[s] = { x: (l + 0.5) * block + ((i % across) - (count - 1) / 2) * pitch, y: line * pitch };
  }));
  return { at, width: order.length * block, depth: Math.ceil(most / across) * pitch };
}

// As many lines as keep the picture about three times as broad as high.
function inLines(view: FabricView, widestRow: number, pitch: number): Placed {
  const servers = view.servers.type.length;
  const perLine = Math.max(1, Math.min(servers, Math.max(Math.floor(widestRow / pitch), Math.ceil(Math.sqrt(servers * 3)))));
  const lines = Math.ceil(servers / perLine);
  const width = Math.max(widestRow, perLine * pitch);
  const step = lines > 1 ? width / perLine : Math.min(width / perLine, 6);
  const home = homes(view);
  const sorted = [...Array(servers).keys()].sort((a, b) => home[a]! - home[b]! || a - b);
  const at: Point[] = Array.from({ length: servers }, () => ({ x: 0, y: 0 }));
  sorted.forEach((s, i) => {
    const line = Math.floor(i / perLine), count = Math.min(perLine, servers - line * perLine);
    at[s] = { x: width / 2 + ((i % perLine) - (count - 1) / 2) * step, y: line * pitch };
  });
  return { at, width, depth: lines * pitch };
}

// Members of a level by the group in their name, in order of appearance.
function blocks(view: FabricView, members: number[]): number[][] {
  const out = new Map<string, number[]>();
  for (const s of members) {
    const key = prefixOf(view.switches.name[s]!);
    const block = out.get(key);
    if (block) block.push(s);
    else out.set(key, [s]);
  }
  return [...out.values()];
}

// Each switch with its servers beside it, at the places given.
function withServers(view: FabricView, place: (s: number) => Point, away: (s: number) => Point, width: number, height: number,
                     boxes: Box[]): NetworkLayout {
  const servers = view.servers.type.length;
  const total = servers + view.switches.name.length;
  const at: Point[] = Array.from({ length: total }, () => ({ x: width / 2, y: height / 2 }));
  const size = Array.from({ length: total }, (_, i) => (i < servers ? 0.3 : 0.6));
  view.switches.name.forEach((_, s) => (at[servers + s] = place(s)));
  const taken = new Map<number, number>();
  const counts = new Map<number, number>();
  const home = homes(view);
  for (const h of home) counts.set(h, (counts.get(h) ?? 0) + 1);
  home.forEach((h, s) => {
    if (h < servers) return;
    const k = taken.get(h) ?? 0;
    taken.set(h, k + 1);
    const n = counts.get(h)!, per = Math.max(1, Math.ceil(Math.sqrt(n)));
    const direction = away(h - servers), across = { x: -direction.y, y: direction.x };
    const out = 1.1 + Math.floor(k / per) * 0.75, sideways = ((k % per) - (Math.min(per, n) - 1) / 2) * 0.75;
    const p = at[h]!;
    at[s] = { x: p.x + direction.x * out + across.x * sideways, y: p.y + direction.y * out + across.y * sideways };
  });
  return { at, size, width, height, boxes, tiers: [] };
}

function torus(view: FabricView, dims: number[]): NetworkLayout {
  const [nx = 1, ny = 1, ...rest] = dims;
  const nz = rest.reduce((a, b) => a * b, 1);
  const pitch = 3.2, shift = nz > 1 ? Math.min(1.3, pitch / nz) : 0;
  if (ny === 1 && nz === 1) return circle(view);
  const place = (s: number): Point => {
    const x = s % nx, y = Math.floor(s / nx) % ny, z = Math.floor(s / (nx * ny));
    return { x: 2 + x * pitch + z * shift, y: 2 + (ny - 1 - y) * pitch + (nz - 1 - z) * shift * 0.8 };
  };
  return withServers(view, place, () => ({ x: 0.6, y: 0.8 }), nx * pitch + nz * shift + 2, ny * pitch + nz * shift + 2, []);
}

function circle(view: FabricView): NetworkLayout {
  const names = view.switches.name;
  const groups = blocks(view, names.map((_, i) => i));
  const clustered = groups.length > 1 && groups.length < names.length;
  const biggest = Math.max(...groups.map((b) => b.length));
  const inner = clustered ? Math.max(1.6, (biggest * 1.7) / (2 * Math.PI)) : 0;
  const around = clustered ? groups.length : names.length;
  const radius = Math.max(4, (around * (clustered ? 2 * inner + 5 : 2.6)) / (2 * Math.PI));
  const middle = radius + inner + 3.5;
  const placed: Point[] = [], outwards: Point[] = [];
  const boxes: Box[] = [];
  const ring = (i: number, n: number): Point => {
    const angle = -Math.PI / 2 + (2 * Math.PI * i) / n;
    return { x: Math.cos(angle), y: Math.sin(angle) };
  };
  if (clustered) {
    groups.forEach((members, gi) => {
      const d = ring(gi, groups.length), c = { x: middle + d.x * radius, y: middle + d.y * radius };
      members.forEach((s, i) => {
        const e = ring(i, members.length);
        placed[s] = { x: c.x + e.x * inner, y: c.y + e.y * inner };
        outwards[s] = e;
      });
      boxes.push({ label: prefixOf(names[members[0]!]!), x: c.x - inner - 2.2, y: c.y - inner - 2.2, width: 2 * inner + 4.4, height: 2 * inner + 4.4 });
    });
  } else {
    names.forEach((_, s) => {
      const d = ring(s, names.length);
      placed[s] = { x: middle + d.x * radius, y: middle + d.y * radius };
      outwards[s] = d;
    });
  }
  return withServers(view, (s) => placed[s]!, (s) => outwards[s]!, 2 * middle, 2 * middle, boxes);
}
