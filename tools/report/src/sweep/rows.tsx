// SPDX-License-Identifier: Apache-2.0
// The table itself, and the points that failed by what they failed of.
import { useMemo, useState } from 'preact/hooks';
import { Section } from '../sections';
import { labelAt, numberAt, type Column, type Point, type Table } from './table';

const kShown = 300;

export function Rows({ table, columns }: { table: Table; columns: Column[] }) {
  const [by, setBy] = useState<{ name: string; up: boolean }>({ name: '', up: true });
  const [query, setQuery] = useState('');
  const rows = useMemo(() => {
    const words = query.toLowerCase().split(/\s+/).filter((w) => w !== '');
    const column = columns.find((c) => c.name === by.name);
    const all = table.points.filter((p) => p.error === '' && words.every((w) => columns.some((c) => labelAt(c, p).toLowerCase().includes(w))));
    if (!column) return all;
    const order = (a: Point, b: Point) => (column.numeric ? (numberAt(column, a) ?? Infinity) - (numberAt(column, b) ?? Infinity) : labelAt(column, a).localeCompare(labelAt(column, b)));
    return [...all].sort((a, b) => (by.up ? order(a, b) : order(b, a)));
  }, [table, by, query]);
  return (
    <Section id="rows" title="All points">
      <p class="finder wide"><input id="rows-search" type="search" placeholder="search values" aria-label="search values" value={query} onInput={(e) => setQuery(e.currentTarget.value)} /> <span class="readout">{rows.length} of {table.points.length}</span></p>
      <div class="scroll tall">
        <table id="rows-table">
          <thead><tr><th class="n">point</th>{columns.map((c) => (
            <th key={c.name} class={c.numeric ? 'n' : ''} aria-sort={by.name === c.name ? (by.up ? 'ascending' : 'descending') : 'none'}>
              <button type="button" onClick={() => setBy({ name: c.name, up: by.name === c.name ? !by.up : true })}>{c.name}{by.name === c.name ? (by.up ? ' ↑' : ' ↓') : ''}</button>
            </th>))}</tr></thead>
          <tbody>{rows.slice(0, kShown).map((p) => (
            <tr key={p.point}><td class="n">{p.point}</td>{columns.map((c) => {
              const value = c.axis ? undefined : p.outputs[c.index];
              return <td key={c.name} class={c.numeric ? 'n' : ''} title={value === undefined || value === null ? undefined : String(value)}>{labelAt(c, p)}</td>;
            })}</tr>))}</tbody>
        </table>
      </div>
      {rows.length > kShown && <p class="hint">The first {kShown} are shown; `weft sweep csv` has all.</p>}
    </Section>
  );
}

export function Failed({ table }: { table: Table }) {
  const groups = useMemo(() => {
    const out = new Map<string, number[]>();
    for (const p of table.points) if (p.error !== '') out.set(p.error, [...(out.get(p.error) ?? []), p.point]);
    return [...out].sort((a, b) => b[1].length - a[1].length);
  }, [table]);
  if (groups.length === 0) return null;
  return (
    <Section id="failed" title="Failed points">
      {groups.slice(0, 20).map(([error, points]) => (
        <div key={error}><h3>{points.length === 1 ? `point ${points[0]}` : `${points.length} points, the first is ${points[0]}`}</h3><pre>{error}</pre></div>
      ))}
      {groups.length > 20 && <p class="hint">{groups.length - 20} more kinds are left out.</p>}
    </Section>
  );
}
