// SPDX-License-Identifier: Apache-2.0
// What ran when: one lane per class of ranks or per sender, time to the right. Slices narrower than a pixel are drawn a pixel wide.
import { useMemo, useState } from 'preact/hooks';
import { Drawing, fitText, roundRect, type Camera } from './canvas';
import { seconds, ticks } from './format';
import { luminance, type Palette } from './palette';
import type { TimelineView } from './report';

const kLane = 26, kAxis = 26, kNames = 190, kMostHeight = 460;
const kFont = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';

export interface LaneIndex {
  first: number[]; // slices of lane i: [first[i], first[i + 1])
  begin: number;
  end: number;
}

// Slices come sorted by lane and time.
export function indexLanes(t: TimelineView): LaneIndex {
  const first = new Array<number>(t.lanes.length + 1).fill(0);
  for (const lane of t.lane) ++first[lane + 1]!;
  for (let i = 0; i < t.lanes.length; ++i) first[i + 1]! += first[i]!;
  let begin = Infinity, end = 0;
  t.start_s.forEach((s, i) => {
    begin = Math.min(begin, s);
    end = Math.max(end, s + t.duration_s[i]!);
  });
  return { first, begin: Number.isFinite(begin) ? begin : 0, end };
}

// The slice of a lane at an instant, within `slack` of it; -1 for none.
export function sliceAt(t: TimelineView, index: LaneIndex, lane: number, when: number, slack: number): number {
  let lo = index.first[lane]!, hi = index.first[lane + 1]!;
  const end = hi;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (t.start_s[mid]! <= when + slack) lo = mid + 1;
    else hi = mid;
  }
  const found = lo - 1;
  if (found < index.first[lane]! || found >= end) return -1;
  return when <= t.start_s[found]! + t.duration_s[found]! + slack ? found : -1;
}

// Seconds of each kind on a lane.
export function busy(t: TimelineView, index: LaneIndex, lane: number): number[] {
  const out = t.kinds.map(() => 0);
  for (let i = index.first[lane]!; i < index.first[lane + 1]!; ++i) out[t.kind[i]!]! += t.duration_s[i]!;
  return out;
}

export function Timeline({ view, palette }: { view: TimelineView; palette: Palette }) {
  const index = useMemo(() => indexLanes(view), [view]);
  const [hovered, setHovered] = useState(-1);
  const span = index.end - index.begin || 1e-12;
  const rows = view.lanes.length;
  const height = Math.min(kMostHeight, rows * kLane + kAxis + 6);
  const used = view.kinds.filter((_, k) => view.kind.includes(k));

  const backwards = useMemo(() => view.labels.map((l) => /backward|recompute/.test(l)), [view]);
  const colourOf = (i: number): string => {
    const kind = view.kinds[view.kind[i]!]!;
    return (backwards[view.label[i]!] && kind === 'compute' ? palette.kinds['backward'] : palette.kinds[kind]) ?? palette.faint;
  };
  const hasBackward = useMemo(() => view.label.some((l, i) => backwards[l] && view.kinds[view.kind[i]!] === 'compute'), [view]);

  const draw = (g: CanvasRenderingContext2D, c: Camera, width: number, full: number) => {
    const right = c.x + width / c.sx;
    g.textBaseline = 'middle';
    // Grid.
    g.font = `11px ${kFont}`;
    g.strokeStyle = palette.line;
    g.fillStyle = palette.muted;
    g.textAlign = 'center';
    g.lineWidth = 1;
    const from = c.x + kNames / c.sx;
    for (const t of ticks(from, right, (width - kNames) / 110)) {
      const x = (t - c.x) * c.sx;
      if (x < kNames) continue;
      g.beginPath();
      g.moveTo(Math.round(x) + 0.5, 0);
      g.lineTo(Math.round(x) + 0.5, full - kAxis + 4);
      g.stroke();
      const text = Math.abs(t) < span * 1e-12 ? '0' : seconds(t);
      g.fillText(text, Math.min(x, width - g.measureText(text).width / 2 - 4), full - kAxis / 2 + 2);
    }
    const top = Math.max(0, Math.floor(c.y / kLane)), last = Math.min(rows, Math.ceil((c.y + full - kAxis) / kLane));
    g.save();
    g.beginPath();
    g.rect(0, 0, width, full - kAxis);
    g.clip();
    for (let lane = top; lane < last; ++lane) {
      const y = lane * kLane - c.y + 4, h = kLane - 8;
      let drawnTo = -1;
      for (let i = index.first[lane]!; i < index.first[lane + 1]!; ++i) {
        const s = view.start_s[i]!, e = s + view.duration_s[i]!;
        if (e < from || s > right) continue;
        const x = Math.max(kNames, (s - c.x) * c.sx), w = Math.max(1, Math.min(width + 4, (e - c.x) * c.sx) - x);
        if (x + w <= drawnTo) continue;
        drawnTo = x + w;
        const colour = colourOf(i);
        g.fillStyle = colour;
        if (w > 6) {
          roundRect(g, x, y, w - 0.8, h, 3);
          g.fill();
        } else {
          g.fillRect(x, y, w, h);
        }
        if (i === hovered) {
          g.strokeStyle = palette.ink;
          g.lineWidth = 1.6;
          g.stroke();
        }
        if (w > 40) {
          g.fillStyle = luminance(colour) > 0.36 ? '#10151d' : '#ffffff';
          g.textAlign = 'left';
          g.fillText(fitText(g, view.labels[view.label[i]!]!, w - 10), x + 5, y + h / 2 + 0.5);
        }
      }
    }
    // Names stay at the left.
    g.fillStyle = palette.card;
    g.fillRect(0, 0, kNames - 2, full);
    g.textAlign = 'left';
    for (let lane = top; lane < last; ++lane) {
      const y = lane * kLane - c.y;
      const { name, job } = view.lanes[lane]!;
      const again = lane > 0 && view.lanes[lane - 1]!.name === name && view.lanes[lane - 1]!.job === job;
      if (again) continue;
      const shown = view.jobs.length > 1 ? `${view.jobs[job]} · ${name}` : name;
      g.fillStyle = palette.ink;
      g.fillText(fitText(g, shown, kNames - 16), 6, y + kLane / 2);
    }
    g.restore();
    g.strokeStyle = palette.line;
    g.beginPath();
    g.moveTo(kNames - 1.5, 0);
    g.lineTo(kNames - 1.5, full - kAxis + 4);
    g.stroke();
  };

  const find = (x: number, y: number, c: Camera): number => {
    const lane = Math.floor((y + c.y) / kLane);
    if (lane < 0 || lane >= rows || x < kNames || y > height - kAxis) return -1;
    return sliceAt(view, index, lane, c.x + x / c.sx, 2 / c.sx);
  };

  return (
    <div>
      <div class="toolbar">
        <span class="keys">
          {used.map((kind) => (<span key={kind}><i style={{ background: palette.kinds[kind] }} />{kind === 'compute' && hasBackward ? 'compute forward' : kind}</span>))}
          {hasBackward && <span><i style={{ background: palette.kinds['backward'] }} />backward</span>}
        </span>
        <output class="readout" id="timeline-readout">
          {hovered >= 0
            ? `${view.labels[view.label[hovered]!]} (${view.kinds[view.kind[hovered]!]}): ${seconds(view.duration_s[hovered]!)} from ${seconds(view.start_s[hovered]!)}`
            : 'point at a slice'}
        </output>
      </div>
      <Drawing
        id="timeline-canvas"
        height={height}
        label={`timeline of ${rows} lanes and ${view.lane.length} slices over ${seconds(span)}`}
        lockY
        fit={(w) => {
          const sx = (w - kNames - 12) / span;
          return { sx, sy: 1, x: index.begin - kNames / sx, y: 0 };
        }}
        draw={draw}
        onHover={(x, y, c) => {
          const i = find(x, y, c);
          setHovered(i);
          return i >= 0;
        }}
        onClick={(x, y, c) => setHovered(find(x, y, c))}
        onLeave={() => setHovered(-1)}
        redraw={[palette, hovered]}
        refit={[view]}
      />
      <p class="hint">Of the last iteration; drag moves, up and down too. Neighbours of one sort that no pixel tells apart are drawn as one{view.left_out > 0 ? `; the ${view.left_out} shortest slices are left out` : ''}. trace.json.gz beside this page has them singly and opens in Perfetto.</p>
    </div>
  );
}
