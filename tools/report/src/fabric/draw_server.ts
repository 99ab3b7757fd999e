// SPDX-License-Identifier: Apache-2.0
// Draws the inside of a server: parts as labelled shapes, cables as lines, the faster the thicker, coloured by load.
import { roundRect, type Camera } from '../canvas';
import { heat, type Palette } from '../palette';
import type { FabricView, ServerType } from '../report';
import { segmentDistance, type Pick } from './draw_network';
import type { ServerLayout } from './server_layout';

const kFont = '"Inter", system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';
const kSizes: Record<string, [number, number]> = {
  gpu: [1.16, 0.74], cpu: [1.3, 0.7], dram: [1.1, 0.5], pcie_switch: [1.1, 0.5], nvswitch: [1.1, 0.62], nic: [0.9, 0.5], storage: [1, 0.5], cxl_memory: [1.1, 0.5],
};

function colours(kind: string, palette: Palette): { fill: string; edge: string } {
  const edge: Record<string, string> = {
    gpu: palette.series[2]!, nvswitch: palette.series[0]!, cpu: palette.series[6]!, nic: palette.series[3]!, pcie_switch: palette.faint, dram: palette.faint,
  };
  return { fill: palette.card, edge: edge[kind] ?? palette.faint };
}

export function drawServer(g: CanvasRenderingContext2D, c: Camera, view: FabricView, type: ServerType, layout: ServerLayout,
                           detail: { up: number[]; down: number[] } | undefined, palette: Palette, picked: Pick | null, hovered: Pick | null): void {
  const X = (n: number) => (layout.at[n]!.x - c.x) * c.sx;
  const Y = (n: number) => (layout.at[n]!.y - c.y) * c.sy;
  for (const box of layout.planes) {
    roundRect(g, (box.x - c.x) * c.sx, (box.y - c.y) * c.sy, box.width * c.sx, box.height * c.sy, 10);
    g.fillStyle = palette.dark ? 'rgba(255,255,255,0.035)' : 'rgba(20,40,80,0.035)';
    g.fill();
    g.strokeStyle = palette.line;
    g.lineWidth = 1;
    g.stroke();
    g.fillStyle = palette.muted;
    g.font = `600 12px ${kFont}`;
    g.textAlign = 'left';
    g.textBaseline = 'middle';
    g.fillText(box.label, (box.x - c.x) * c.sx + 8, (box.y - c.y) * c.sy - 9);
  }
  const order = type.cables.map((_, i) => i);
  const load = (i: number) => (detail ? Math.max(detail.up[i]!, detail.down[i]!) : 0);
  order.sort((a, b) => load(a) - load(b));
  const fastest = Math.max(...type.cables.map(([, , count, kind]) => count * view.kinds[kind]!.rate_gbs));
  const dense = type.cables.length > 300;
  for (const i of order) {
    const [a, b, count, kind] = type.cables[i]!;
    const marked = [picked, hovered].some((p) => p && ((p.kind === 'cable' && p.index === i) || (p.kind === 'node' && (p.index === a || p.index === b))));
    const fast = view.kinds[kind]!.tier === 'scale-up';
    g.beginPath();
    path(g, X(a), Y(a), X(b), Y(b), type.nodes.length <= kMostLookedAt && crosses(layout, a, b));
    g.strokeStyle = detail ? heat(palette, load(i)) : palette.faint;
    const share = Math.sqrt((count * view.kinds[kind]!.rate_gbs) / fastest);
    g.lineWidth = Math.max(0.6, (marked ? 1.8 : 1) * (0.6 + (fast ? 3.2 : 2.2) * share) * Math.min(1.3, c.sx / 46) * (dense ? 0.35 : type.cables.length > 90 ? 0.6 : 1));
    g.globalAlpha = (picked || hovered) && !marked ? 0.25 : dense ? 0.5 : 0.95;
    g.stroke();
  }
  g.globalAlpha = 1;
  type.nodes.forEach(([name, kind], n) => {
    const [w, h] = kSizes[kind] ?? [1, 0.5];
    const { fill, edge } = colours(kind, palette);
    const chosen = [picked, hovered].some((p) => p?.kind === 'node' && p.index === n);
    roundRect(g, X(n) - (w / 2) * c.sx, Y(n) - (h / 2) * c.sy, w * c.sx, h * c.sy, kind === 'nvswitch' ? h * c.sy : 5);
    g.fillStyle = fill;
    g.fill();
    g.strokeStyle = edge;
    g.lineWidth = chosen ? 3 : kind === 'gpu' ? 2 : 1.3;
    g.stroke();
    // A name too long for its part is told by its number.
    const sizeOf = (text: string) => Math.min(13, (w * c.sx) / (0.62 * Math.max(4, text.length)));
    const text = sizeOf(name) < 6.8 ? (/\d+$/.exec(name)?.[0] ?? '') : name;
    const font = sizeOf(text);
    if (font < 6) return;
    g.fillStyle = palette.ink;
    g.font = `${kind === 'gpu' ? 600 : 400} ${font}px ${kFont}`;
    g.textAlign = 'center';
    g.textBaseline = 'middle';
    g.fillText(text, X(n), Y(n));
  });
}

const kMostLookedAt = 80;

// Whether a straight line would run through another part.
function crosses(layout: ServerLayout, a: number, b: number): boolean {
  const p = layout.at[a]!, q = layout.at[b]!;
  return layout.at.some((r, n) => n !== a && n !== b && segmentDistance(r.x, r.y, p.x, p.y, q.x, q.y) < 0.3);
}

function path(g: CanvasRenderingContext2D, ax: number, ay: number, bx: number, by: number, bowed: boolean): void {
  g.moveTo(ax, ay);
  if (!bowed) return g.lineTo(bx, by);
  const length = Math.hypot(bx - ax, by - ay), bow = Math.min(60, length * 0.14);
  g.quadraticCurveTo((ax + bx) / 2 + ((ay - by) / length) * bow, (ay + by) / 2 + ((bx - ax) / length) * bow, bx, by);
}

export function pickInServer(type: ServerType, layout: ServerLayout, x: number, y: number, c: Camera): Pick | null {
  const wx = c.x + x / c.sx, wy = c.y + y / c.sy;
  for (let n = type.nodes.length - 1; n >= 0; --n) {
    const [w, h] = kSizes[type.nodes[n]![1]] ?? [1, 0.5];
    const p = layout.at[n]!;
    if (Math.abs(p.x - wx) <= w / 2 && Math.abs(p.y - wy) <= h / 2) return { kind: 'node', index: n };
  }
  let best = 5 / c.sx, found = -1;
  type.cables.forEach(([a, b], i) => {
    const p = layout.at[a]!, q = layout.at[b]!;
    const d = segmentDistance(wx, wy, p.x, p.y, q.x, q.y);
    if (d < best) {
      best = d;
      found = i;
    }
  });
  return found < 0 ? null : { kind: 'cable', index: found };
}
