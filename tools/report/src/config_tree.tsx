// SPDX-License-Identifier: Apache-2.0
// The scenario as it ran, every default and every part in its place; searchable by pointer, key or value.
import { useMemo, useState } from 'preact/hooks';

export interface Leaf {
  pointer: string;
  value: string;
}

const kShown = 400;

// Every value with its JSON pointer; short lists of plain values count as one.
export function leaves(json: unknown, pointer = ''): Leaf[] {
  if (Array.isArray(json)) {
    const plain = json.every((v) => typeof v !== 'object' || v === null);
    if (plain && json.length <= 16) return [{ pointer, value: JSON.stringify(json) }];
    return json.flatMap((v, i) => leaves(v, `${pointer}/${i}`));
  }
  if (typeof json === 'object' && json !== null) {
    const entries = Object.entries(json);
    if (entries.length === 0) return [{ pointer, value: '{}' }];
    return entries.flatMap(([k, v]) => leaves(v, `${pointer}/${k.replaceAll('~', '~0').replaceAll('/', '~1')}`));
  }
  return [{ pointer, value: typeof json === 'string' ? json : JSON.stringify(json) }];
}

// All words must be found, in the pointer or the value.
export function search(list: Leaf[], query: string): Leaf[] {
  const words = query.toLowerCase().split(/\s+/).filter((w) => w !== '');
  return words.length === 0 ? list : list.filter((l) => {
    const text = `${l.pointer} ${l.value}`.toLowerCase();
    return words.every((w) => text.includes(w));
  });
}

export function ConfigTree({ json }: { json: unknown }) {
  const all = useMemo(() => leaves(json), [json]);
  const [query, setQuery] = useState('');
  const [everything, setEverything] = useState(false);
  const found = useMemo(() => search(all, query), [all, query]);
  const shown = everything ? found : found.slice(0, kShown);
  return (
    <div>
      <div class="toolbar">
        <label class="finder wide">
          <span class="hidden">search the configuration</span>
          <input id="config-search" type="search" placeholder="search: bandwidth, /fabric/network, assumed …" value={query} onInput={(e) => setQuery(e.currentTarget.value)} />
        </label>
        <output class="readout">{found.length} of {all.length} values</output>
      </div>
      <div class="scroll">
        <table class="config" id="config-table">
          <thead><tr><th>pointer</th><th>value</th></tr></thead>
          <tbody>
            {shown.map((l) => (<tr key={l.pointer}><td><code>{l.pointer}</code></td><td>{l.value}</td></tr>))}
          </tbody>
        </table>
        {shown.length < found.length && <button type="button" onClick={() => setEverything(true)}>show the other {found.length - shown.length}</button>}
      </div>
    </div>
  );
}
