// SPDX-License-Identifier: Apache-2.0
// Draws the network. Detail follows the zoom: squares first, then names; cables in one stroke per colour, so that tens of
// thousands stay fluid, and only those in sight.
import { roundRect, type Camera } from '../canvas';
import { percent } from '../format';
import { bucketColours, bucketOf, heat, kBuckets, luminance, type Palette } from '../palette';
import type { FabricView } from '../report';
import type { NetworkLayout } from './network_layout';

export interface Pick {
  kind: 'server' | 'switch' | 'cable' | 'node';
  index: number;
}

const kNamesFrom = 34; // pixels of a square's edge
const kFont = '"Inter", system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';

export function drawNetwork(g: CanvasRenderingContext2D, c: Camera, width: number, height: number, view: FabricView, layout: NetworkLayout,
                            palette: Palette, picked: Pick | null, hovered: Pick | null): void {
  const servers = view.servers.type.length;
  const X = (i: number) => (layout.at[i]!.x - c.x) * c.sx;
  const Y = (i: number) => (layout.at[i]!.y - c.y) * c.sy;
  g.font = `11px ${kFont}`;
  g.textBaseline = 'middle';
  for (const box of layout.boxes) {
    roundRect(g, (box.x - c.x) * c.sx, (box.y - c.y) * c.sy, box.width * c.sx, box.height * c.sy, 8);
    g.fillStyle = palette.dark ? 'rgba(255,255,255,0.035)' : 'rgba(20,40,80,0.035)';
    g.fill();
    g.strokeStyle = palette.line;
    g.lineWidth = 1;
    g.stroke();
    if (box.width * c.sx > 34) {
      g.fillStyle = palette.muted;
      g.textAlign = 'left';
      g.fillText(box.label, (box.x - c.x) * c.sx + 6, (box.y - c.y) * c.sy - 8);
    }
  }
  drawCables(g, c, width, height, view, layout, palette, picked, hovered);
  const colours = bucketColours(palette);
  for (let i = 0; i < layout.at.length; ++i) {
    const half = layout.size[i]! * c.sx, x = X(i), y = Y(i);
    if (x < -half || y < -half || x > width + half || y > height + half) continue;
    const isServer = i < servers;
    const load = isServer ? view.servers.load[i]! : view.switches.load[i - servers]!;
    const colour = colours[bucketOf(load)]!;
    const here = (p: Pick | null) => p !== null && (isServer ? p.kind === 'server' && p.index === i : p.kind === 'switch' && p.index === i - servers);
    const edge = Math.max(2, 2 * half);
    g.fillStyle = colour;
    if (edge < 6) {
      g.fillRect(x - edge / 2, y - edge / 2, edge, edge);
    } else {
      roundRect(g, x - half, y - (isServer ? half : half * 0.72), edge, isServer ? edge : edge * 0.72, isServer ? Math.min(4, half / 3) : half * 0.36);
      g.fill();
      g.strokeStyle = here(picked) || here(hovered) ? palette.ink : palette.dark ? 'rgba(255,255,255,0.25)' : 'rgba(20,30,50,0.28)';
      g.lineWidth = here(picked) ? 2.5 : here(hovered) ? 2 : 0.8;
      g.stroke();
    }
    if (edge >= kNamesFrom) {
      const name = isServer ? `server${i}` : view.switches.name[i - servers]!.replace(/^.*\//, '');
      g.fillStyle = luminance(heat(palette, load)) > 0.32 ? '#141a24' : '#ffffff';
      g.textAlign = 'center';
      g.font = `${Math.min(12, edge / 5)}px ${kFont}`;
      g.fillText(name, x, y - (isServer && edge > 50 ? 7 : 0));
      if (isServer && edge > 50) g.fillText(percent(load), x, y + 9);
    }
  }
  g.font = `600 12px ${kFont}`;
  g.textAlign = 'left';
  for (const tier of layout.tiers) {
    const y = (tier.y - c.y) * c.sy, w = g.measureText(tier.label).width;
    g.fillStyle = palette.card;
    g.globalAlpha = 0.86;
    roundRect(g, 6, y - 10, w + 12, 20, 5);
    g.fill();
    g.globalAlpha = 1;
    g.fillStyle = palette.muted;
    g.fillText(tier.label, 12, y);
  }
}

const kMostDrawn = 9000, kHottest = 1500;
const hotness = new WeakMap<FabricView, number>();

// Cables busier than this are always drawn; none when all are alike.
export function hotFrom(view: FabricView): number {
  let from = hotness.get(view);
  if (from === undefined) {
    const loads = view.cables.up.map((up, i) => Math.max(up, view.cables.down[i]!)).sort((a, b) => b - a);
    from = loads[Math.min(kHottest, loads.length - 1)] ?? 0;
    hotness.set(view, from);
  }
  return from;
}

function drawCables(g: CanvasRenderingContext2D, c: Camera, width: number, height: number, view: FabricView, layout: NetworkLayout,
                    palette: Palette, picked: Pick | null, hovered: Pick | null): void {
  const servers = view.servers.type.length;
  const paths: (Path2D | undefined)[] = new Array(kBuckets);
  const n = view.cables.a.length;
  const marked = [picked, hovered].filter((p): p is Pick => p !== null);
  const strong: number[] = [];
  let shown = 0;
  // From afar a part of very many stands for all.
  const every = c.sx < 14 ? Math.ceil(n / kMostDrawn) : 1, hot = every > 1 ? hotFrom(view) : 0;
  for (let i = 0; i < n; ++i) {
    if (every > 1 && i % every !== 0 && Math.max(view.cables.up[i]!, view.cables.down[i]!) <= hot) continue;
    const a = view.cables.a[i]!, b = view.cables.b[i]!;
    const p = layout.at[a]!, q = layout.at[b]!;
    const ax = (p.x - c.x) * c.sx, ay = (p.y - c.y) * c.sy, bx = (q.x - c.x) * c.sx, by = (q.y - c.y) * c.sy;
    if ((ax < 0 && bx < 0) || (ay < 0 && by < 0) || (ax > width && bx > width) || (ay > height && by > height)) continue;
    ++shown;
    const k = bucketOf(Math.max(view.cables.up[i]!, view.cables.down[i]!));
    const path = (paths[k] ??= new Path2D());
    path.moveTo(ax, ay);
    path.lineTo(bx, by);
    if (marked.some((m) => (m.kind === 'cable' && m.index === i) || (m.kind === 'switch' && (a === servers + m.index || b === servers + m.index)) || (m.kind === 'server' && a === m.index))) strong.push(i);
  }
  const colours = bucketColours(palette);
  const base = shown > 4000 ? 0.4 : shown > 800 ? 0.55 : shown > 150 ? 0.8 : 1.4;
  paths.forEach((path, k) => {
    if (!path) return;
    const share = k / (kBuckets - 1);
    g.strokeStyle = colours[k]!;
    g.globalAlpha = (strong.length > 0 ? 0.35 : 1) * (shown > 4000 ? 0.14 + 0.3 * share : shown > 800 ? 0.5 + 0.3 * share : shown > 150 ? 0.8 : 0.95);
    g.lineWidth = base * (1 + share);
    g.stroke(path);
  });
  g.globalAlpha = 1;
  for (const i of strong) {
    const p = layout.at[view.cables.a[i]!]!, q = layout.at[view.cables.b[i]!]!;
    g.beginPath();
    g.moveTo((p.x - c.x) * c.sx, (p.y - c.y) * c.sy);
    g.lineTo((q.x - c.x) * c.sx, (q.y - c.y) * c.sy);
    g.strokeStyle = heat(palette, Math.max(view.cables.up[i]!, view.cables.down[i]!));
    g.lineWidth = 2.2;
    g.stroke();
  }
}

export function pickInNetwork(view: FabricView, layout: NetworkLayout, x: number, y: number, c: Camera): Pick | null {
  const servers = view.servers.type.length;
  const wx = c.x + x / c.sx, wy = c.y + y / c.sy, slack = 3 / c.sx;
  for (let i = layout.at.length - 1; i >= 0; --i) {
    const p = layout.at[i]!, r = layout.size[i]! + slack;
    if (Math.abs(p.x - wx) <= r && Math.abs(p.y - wy) <= r) return i < servers ? { kind: 'server', index: i } : { kind: 'switch', index: i - servers };
  }
  let best = 5 / c.sx, found = -1;
  for (let i = 0; i < view.cables.a.length; ++i) {
    const p = layout.at[view.cables.a[i]!]!, q = layout.at[view.cables.b[i]!]!;
    const d = segmentDistance(wx, wy, p.x, p.y, q.x, q.y);
    if (d < best) {
      best = d;
      found = i;
    }
  }
  return found < 0 ? null : { kind: 'cable', index: found };
}

export function segmentDistance(x: number, y: number, ax: number, ay: number, bx: number, by: number): number {
  const dx = bx - ax, dy = by - ay, length = dx * dx + dy * dy;
  const t = length === 0 ? 0 : Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / length));
  return Math.hypot(x - ax - t * dx, y - ay - t * dy);
}
