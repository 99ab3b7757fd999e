// SPDX-License-Identifier: Apache-2.0
// What the page asks, the steps of its sliders, and the way into an address and back. Which values are legal is for weft to say.

export interface Question {
  fabric: string;
  model: string;
  fidelity: string;
  gpus: number;
  tp: number;
  pp: number;
  dp: number;
  ep: number;
  vpp: number;
  micro_batch: number;
  global_batch: number;
  seq: number;
  zero: number;
  recompute: string;
  bandwidth: number;
  oversubscription?: number | undefined;
}
export type NumberKey = { [K in keyof Question]-?: NonNullable<Question[K]> extends number ? K : never }[keyof Question];

export interface FabricChoice {
  name: string;
  summary: string;
  gpus_per_server: number;
  port_gbps: number;
  oversubscribes: boolean;
  oversubscription: number;
}
export interface ModelChoice {
  name: string;
  summary: string;
  parameters: number;
  experts: boolean;
}
export interface Choices {
  fabrics: FabricChoice[];
  models: ModelChoice[];
  levels: string[];
  recomputes: string[];
  start: Question;
  most_gpus: number;
}

export function readChoices(data: unknown): Choices {
  const first = (Array.isArray(data) ? data[0] : undefined) as Choices | undefined;
  if (!first || !Array.isArray(first.fabrics) || !Array.isArray(first.models)) throw new Error('it was not made by weft serve');
  const { quick, ...start } = first.start as Question & { quick?: boolean };
  void quick;
  return { ...first, start };
}

const doubles = (from: number, to: number): number[] => {
  const out: number[] = [];
  for (let v = from; v <= to; v *= 2) out.push(v);
  return out;
};

// The steps of a slider; a value between them is one, too.
export function stepsOf(key: NumberKey, value: number, most: number): number[] {
  const steps: Record<NumberKey, number[]> = {
    bandwidth: [0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 8],
    oversubscription: [1, 1.5, 2, 3, 4, 6, 8, 16],
    gpus: doubles(1, most),
    tp: doubles(1, 64),
    pp: [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64],
    dp: doubles(1, most),
    ep: doubles(1, 256),
    vpp: [1, 2, 3, 4, 5, 6, 7, 8, 10, 12],
    micro_batch: doubles(1, 32),
    global_batch: doubles(1, 65536),
    seq: doubles(512, 131072),
    zero: [0, 1, 2, 3],
  };
  return steps[key].includes(value) ? steps[key] : [...steps[key], value].sort((a, b) => a - b);
}

// A value moved. With `tied` the number of GPUs stays the product of the plan: replicas follow the rest, and GPUs follow replicas.
// A product that does not come out is left as it is, for weft to refuse.
export function moved(question: Question, key: keyof Question, value: number | string | undefined, tied: boolean, most: number): Question {
  const next = { ...question, [key]: value } as Question;
  if (key === 'fabric') next.oversubscription = undefined;
  if (!tied) return next;
  if (key === 'dp') {
    const gpus = next.tp * next.pp * next.dp;
    if (gpus <= most) next.gpus = gpus;
  } else if (key === 'gpus' || key === 'tp' || key === 'pp') {
    const replicas = next.gpus / (next.tp * next.pp);
    if (Number.isInteger(replicas)) next.dp = replicas;
  }
  return next;
}

// What differs from the start, as the fragment of an address.
export function toFragment(question: Question, start: Question): string {
  const out = new URLSearchParams();
  for (const [key, value] of Object.entries(question)) {
    if (value !== undefined && value !== start[key as keyof Question]) out.set(key, String(value));
  }
  return out.toString();
}

export function fromFragment(fragment: string, start: Question): Question {
  const out: Record<string, unknown> = { ...start };
  for (const [key, text] of new URLSearchParams(fragment)) {
    if (key !== 'oversubscription' && !(key in start)) continue;
    const isText = typeof (start as unknown as Record<string, unknown>)[key] === 'string';
    const value = Number(text);
    if (isText) out[key] = text;
    else if (text !== '' && Number.isFinite(value)) out[key] = value;
  }
  return out as unknown as Question;
}
