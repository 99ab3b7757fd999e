// SPDX-License-Identifier: Apache-2.0
// The documents a page holds: reports of runs and tables of message sizes, as `weft` writes them.

export interface Job {
  name: string;
  kind: string;
  collective?: string;
  algorithm?: string;
  channels?: number;
  ranks: number;
  bytes: number;
  time_s: number;
  start_s: number;
  finish_s: number;
  iterations: number;
  algbw_gbs?: number;
  busbw_gbs?: number;
  mean_rate_gbs?: number;
  least_rate_gbs?: number;
  notes?: string[];
  step_time_s?: number;
  mfu?: number;
  tokens_per_s?: number;
  model_flops_per_s_per_gpu?: number;
  bubble_fraction?: number;
  compute_s?: number;
  exposed_comm_s?: Record<string, number>;
  comm_bytes?: Record<string, number>;
  memory_bytes_per_gpu?: Record<string, number>;
  fits?: boolean;
  plan?: Record<string, unknown>;
  [key: string]: unknown;
}

export interface Flow {
  id: string;
  src: string;
  dst: string;
  bytes: number;
  start_s: number;
  finish_s: number;
  rate_gbs: number;
  retransmitted_bytes: number;
}

export interface Link {
  id: string;
  class: string;
  tier: string;
  bytes: number;
  utilisation: number;
  peak_queue_bytes?: number;
  pfc_pause_s?: number;
  ecn_marks?: number;
  drops?: number;
}

export interface ServerType {
  name: string;
  nodes: [name: string, kind: string][];
  cables: [a: number, b: number, count: number, kind: number][];
}

export interface FabricView {
  gpus: number;
  nodes: number;
  links: number;
  generator?: string;
  types: ServerType[];
  servers: { type: number[]; load: number[]; details: { server: number; up: number[]; down: number[] }[] };
  switches: { name: string[]; level: number[]; load: number[] };
  cables: { a: number[]; b: number[]; count: number[]; kind: number[]; up: number[]; down: number[]; left_out: number };
  kinds: { tier: string; class: string; rate_gbs: number; delay_s: number }[];
}

export interface TimelineView {
  jobs: string[];
  labels: string[];
  kinds: string[];
  lanes: { name: string; job: number }[];
  lane: number[];
  start_s: number[];
  duration_s: number[];
  kind: number[];
  label: number[];
  left_out: number;
}

export interface Run {
  weft: { version: string; schema: number };
  scenario: string;
  question?: string;
  fabric: string;
  fidelity: string;
  seed: number;
  fingerprint: string;
  time_s: number;
  bound_s: number;
  bound_by: string;
  events: number;
  wall_s: number;
  peak_rss_bytes: number;
  jobs: Job[];
  flows: Flow[];
  links: Link[];
  left_out: { flows: number; links: number };
  critical_path: { op: string; resource: string; start_s: number; duration_s: number }[];
  bottlenecks: { resource: string; share: number; gain_if_infinite_s: number | null }[];
  evidence: { measured: number; datasheet: number; assumed: number };
  network: Record<string, number>;
  settings?: { name: string; value: string; source: string }[];
  warnings: { code: string; text: string }[];
  link_series?: { id: string; every_s: number; bytes: number[]; queue_mean_bytes?: number[]; queue_max_bytes?: number[]; pfc_paused?: number[] }[];
  flow_series?: { id: string; every_s: number; bytes: number[] }[];
  pauses?: { paused: string; by: string; because_of: string; pauses: number; pfc_pause_s: number }[];
  victims?: { flow: string; share: number; text: string }[];
  effective: unknown;
  view?: { fabric?: FabricView; timeline?: TimelineView };
  [key: string]: unknown;
}

export interface Row {
  bytes: number;
  time_us?: number;
  busbw_gbs?: number;
  algorithm?: string;
  protocol?: string;
  measured_us?: number;
  predicted_us?: number;
  measured_busbw_gbs?: number;
  predicted_busbw_gbs?: number;
}

export interface SizeTable {
  collective: string;
  ranks: number;
  fabric?: string;
  rows: Row[];
}

export type Document = { name: string } & ({ kind: 'run'; run: Run } | { kind: 'table'; table: SizeTable });

const isObject = (v: unknown): v is Record<string, unknown> => typeof v === 'object' && v !== null && !Array.isArray(v);

// What the page was given: reports, each perhaps with the file it came from. Names are made to differ.
export function readDocuments(data: unknown): Document[] {
  if (!Array.isArray(data)) return [];
  const out: Document[] = [], files: string[] = [];
  for (const entry of data) {
    const wrapped = isObject(entry) && isObject(entry['report']);
    const json: unknown = wrapped ? entry['report'] : entry;
    const file = wrapped && typeof entry['file'] === 'string' ? entry['file'] : '';
    if (!isObject(json)) continue;
    files[out.length] = file;
    if (Array.isArray(json['rows']) && typeof json['collective'] === 'string') {
      const table = json as unknown as SizeTable;
      out.push({ name: shortName(file) || `${table.collective}, ${table.ranks} GPUs`, kind: 'table', table });
    } else if (typeof json['time_s'] === 'number' && Array.isArray(json['jobs'])) {
      const run = json as unknown as Run;
      out.push({ name: run.scenario || shortName(file) || run.fabric, kind: 'run', run });
    }
  }
  const times = new Map<string, number>();
  for (const d of out) times.set(d.name, (times.get(d.name) ?? 0) + 1);
  const seen = new Map<string, number>();
  for (const [i, d] of out.entries()) {
    if (times.get(d.name) === 1) continue;
    const k = (seen.get(d.name) ?? 0) + 1;
    seen.set(d.name, k);
    const file = files[i];
    d.name = file ? `${d.name} (${shortName(file)})` : `${d.name} #${k}`;
  }
  return out;
}

// "runs/a/report.json" is known by its folder, "runs/a.json" by its stem.
export function shortName(file: string): string {
  const parts = file.split('/').filter((p) => p !== '' && p !== '.');
  const last = parts.at(-1)?.replace(/\.json$/, '') ?? '';
  return last === 'report' && parts.length > 1 ? (parts.at(-2) ?? last) : last;
}

// The value at a JSON pointer; undefined when there is none.
export function at(json: unknown, pointer: string): unknown {
  let here: unknown = json;
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(here)) here = here[Number(key)];
    else if (isObject(here)) here = here[key];
    else return undefined;
  }
  return here;
}

// What limits a run: the first bottleneck that a faster machine would relieve.
export function limitedBy(run: Run): Run['bottlenecks'][number] | undefined {
  return run.bottlenecks.find((b) => (b.gain_if_infinite_s ?? 0) > 0);
}

export interface CurvePoint {
  bytes: number;
  time_s: number;
  busbw_gbs: number;
}
export interface Curve {
  name: string;
  measured: boolean;
  points: CurvePoint[];
}

// Curves against message size: tables as they are; collective jobs of several runs joined where only the size differs.
export function curves(documents: Document[]): Curve[] {
  const out: Curve[] = [];
  const joined = new Map<string, Curve>();
  for (const d of documents) {
    if (d.kind === 'table') {
      const add = (name: string, measured: boolean, time: keyof Row, bandwidth: keyof Row) => {
        const points: CurvePoint[] = [];
        for (const row of d.table.rows) {
          const us = row[time];
          if (typeof us !== 'number') continue;
          points.push({ bytes: row.bytes, time_s: us * 1e-6, busbw_gbs: Number(row[bandwidth] ?? 0) });
        }
        if (points.length > 0) out.push({ name, measured, points });
      };
      add(d.name, false, 'time_us', 'busbw_gbs');
      add(d.name, false, 'predicted_us', 'predicted_busbw_gbs');
      add(`${d.name}, measured`, true, 'measured_us', 'measured_busbw_gbs');
      continue;
    }
    for (const job of d.run.jobs) {
      if (job.collective === undefined || job.busbw_gbs === undefined) continue;
      const name = `${job.collective} on ${d.run.fabric}, ${job.ranks} GPUs, ${job.algorithm ?? ''}`.replace(/, $/, '');
      // The same size again means that something else differs: that is no point of this curve.
      let curve = joined.get(name);
      if (curve === undefined || curve.points.some((p) => p.bytes === job.bytes)) {
        curve = { name: curve === undefined ? name : `${name} (${d.name})`, measured: false, points: [] };
        if (!joined.has(name)) joined.set(name, curve);
        out.push(curve);
      }
      curve.points.push({ bytes: job.bytes, time_s: job.time_s, busbw_gbs: job.busbw_gbs });
    }
  }
  for (const curve of out) curve.points.sort((a, b) => a.bytes - b.bytes);
  return out;
}
