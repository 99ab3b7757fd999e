// SPDX-License-Identifier: Apache-2.0
// A drawing that can be moved and zoomed: by wheel, by dragging, and by keys (arrows, + and -, 0 for all of it).
import { useEffect, useRef } from 'preact/hooks';

export interface Camera {
  x: number; // world coordinate at the left edge
  y: number;
  sx: number; // pixels per world unit
  sy: number;
}

export interface DrawingProps {
  label: string;
  id: string;
  height: number;
  // The camera that shows everything in a canvas of this size.
  fit: (width: number, height: number) => Camera;
  draw: (g: CanvasRenderingContext2D, camera: Camera, width: number, height: number) => void;
  // A point in pixels; returns whether the pointer is on something.
  onHover?: (x: number, y: number, camera: Camera) => boolean;
  onClick?: (x: number, y: number, camera: Camera) => void;
  onLeave?: () => void;
  lockY?: boolean; // only x zooms; y scrolls
  redraw: unknown[]; // draws again when one of these changes
  refit: unknown[]; // shows everything again when one of these changes
}

const kMostZoom = 4000;

export function Drawing(props: DrawingProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const camera = useRef<Camera | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const frame = useRef(0);

  const paint = () => {
    frame.current = 0;
    const c = canvas.current;
    if (!c) return;
    const width = c.clientWidth, height = c.clientHeight, ratio = window.devicePixelRatio || 1;
    if (width === 0 || height === 0) return;
    if (c.width !== Math.round(width * ratio) || c.height !== Math.round(height * ratio)) {
      c.width = Math.round(width * ratio);
      c.height = Math.round(height * ratio);
    }
    camera.current ??= latest.current.fit(width, height);
    const g = c.getContext('2d');
    if (!g) return;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    latest.current.draw(g, camera.current, width, height);
    c.dataset['scale'] = String(camera.current.sx);
  };
  const schedule = () => {
    if (frame.current === 0) frame.current = requestAnimationFrame(paint);
  };
  const showAll = () => {
    camera.current = null;
    schedule();
  };
  const zoom = (factor: number, px: number, py: number) => {
    const c = canvas.current, v = camera.current;
    if (!c || !v) return;
    const all = latest.current.fit(c.clientWidth, c.clientHeight);
    const wanted = Math.max(all.sx * 0.5, Math.min(all.sx * kMostZoom, v.sx * factor));
    const f = wanted / v.sx;
    if (f === 1) return;
    camera.current = {
      sx: wanted,
      sy: latest.current.lockY ? v.sy : v.sy * f,
      x: v.x + px / v.sx - px / wanted,
      y: latest.current.lockY ? v.y : v.y + py / v.sy - py / (v.sy * f),
    };
    schedule();
  };
  const pan = (dx: number, dy: number) => {
    const v = camera.current, c = canvas.current;
    if (!v || !c) return;
    v.x -= dx / v.sx;
    if (latest.current.lockY) {
      const all = latest.current.fit(c.clientWidth, c.clientHeight);
      v.y = Math.max(all.y, v.y - dy / v.sy);
    } else {
      v.y -= dy / v.sy;
    }
    schedule();
  };

  useEffect(showAll, props.refit);
  useEffect(schedule, props.redraw);
  useEffect(() => {
    const c = canvas.current!;
    let down: { x: number; y: number; moved: boolean } | null = null;
    const position = (e: MouseEvent) => {
      const box = c.getBoundingClientRect();
      return { x: e.clientX - box.left, y: e.clientY - box.top };
    };
    // Plain scrolling stays the page's; with Ctrl or once the drawing has the focus the wheel zooms.
    const wheel = (e: WheelEvent) => {
      if (!e.ctrlKey && !e.metaKey && document.activeElement !== c) return;
      e.preventDefault();
      const p = position(e);
      if (e.shiftKey) pan(-e.deltaY, 0);
      else zoom(Math.exp(-e.deltaY * 0.0016), p.x, p.y);
    };
    const press = (e: PointerEvent) => {
      down = { ...position(e), moved: false };
      c.setPointerCapture(e.pointerId);
    };
    const move = (e: PointerEvent) => {
      const p = position(e);
      if (down) {
        if (Math.abs(p.x - down.x) + Math.abs(p.y - down.y) > 3) down.moved = true;
        if (down.moved) {
          pan(p.x - down.x, p.y - down.y);
          down.x = p.x;
          down.y = p.y;
        }
        return;
      }
      if (camera.current) c.style.cursor = latest.current.onHover?.(p.x, p.y, camera.current) ? 'pointer' : 'grab';
    };
    const release = (e: PointerEvent) => {
      const p = position(e);
      if (down && !down.moved && camera.current) latest.current.onClick?.(p.x, p.y, camera.current);
      down = null;
    };
    const leave = () => latest.current.onLeave?.();
    const keys = (e: KeyboardEvent) => {
      const far = 60, x = c.clientWidth / 2, y = c.clientHeight / 2;
      const actions: Record<string, () => void> = {
        ArrowLeft: () => pan(far, 0), ArrowRight: () => pan(-far, 0), ArrowUp: () => pan(0, far), ArrowDown: () => pan(0, -far),
        '+': () => zoom(1.5, x, y), '=': () => zoom(1.5, x, y), '-': () => zoom(1 / 1.5, x, y), '0': showAll,
      };
      const action = actions[e.key];
      if (!action || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      action();
    };
    c.addEventListener('wheel', wheel, { passive: false });
    c.addEventListener('pointerdown', press);
    c.addEventListener('pointermove', move);
    c.addEventListener('pointerup', release);
    c.addEventListener('pointerleave', leave);
    c.addEventListener('keydown', keys);
    let width = c.clientWidth;
    const size = new ResizeObserver(() => {
      if (c.clientWidth !== width) camera.current = null;
      width = c.clientWidth;
      schedule();
    });
    size.observe(c);
    return () => {
      size.disconnect();
      cancelAnimationFrame(frame.current);
    };
  }, []);

  const centre = () => [canvas.current!.clientWidth / 2, canvas.current!.clientHeight / 2] as const;
  return (
    <div class="drawing">
      <canvas ref={canvas} id={props.id} tabIndex={0} role="img" aria-label={props.label} style={{ height: `${props.height}px` }} />
      <div class="zoom" role="group" aria-label="zoom">
        <button type="button" title="closer (+)" onClick={() => zoom(1.6, ...centre())}>+</button>
        <button type="button" title="farther (−)" onClick={() => zoom(1 / 1.6, ...centre())}>−</button>
        <button type="button" title="all of it (0)" onClick={showAll}>⤢</button>
      </div>
    </div>
  );
}

export function roundRect(g: CanvasRenderingContext2D, x: number, y: number, w: number, h: number, r: number): void {
  const k = Math.max(0, Math.min(r, w / 2, h / 2));
  g.beginPath();
  g.moveTo(x + k, y);
  g.arcTo(x + w, y, x + w, y + h, k);
  g.arcTo(x + w, y + h, x, y + h, k);
  g.arcTo(x, y + h, x, y, k);
  g.arcTo(x, y, x + w, y, k);
  g.closePath();
}

// As much of a text as fits; nothing when not even three letters do.
export function fitText(g: CanvasRenderingContext2D, text: string, width: number): string {
  if (g.measureText(text).width <= width) return text;
  let lo = 0, hi = text.length;
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    if (g.measureText(text.slice(0, mid) + '…').width <= width) lo = mid;
    else hi = mid - 1;
  }
  return lo < 2 ? '' : text.slice(0, lo) + '…';
}
