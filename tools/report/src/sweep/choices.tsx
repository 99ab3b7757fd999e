// SPDX-License-Identifier: Apache-2.0
// Lists to choose from above a chart.
import { filterable, type Column, type Filter, type Table } from './table';

export function Choice({ id, label, value, options, names, onChange }: { id: string; label: string; value: string; options: string[]; names?: string[]; onChange: (v: string) => void }) {
  return (
    <label class="choice">{label}{' '}
      <select id={id} value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        {options.map((o, i) => (<option key={o} value={o}>{names?.[i] ?? (o === '' ? '–' : o)}</option>))}
      </select>
    </label>
  );
}

export function Filters({ table, columns, filter, onChange, prefix, all = false }: { table: Table; columns: Column[]; filter: Filter; onChange: (f: Filter) => void; prefix: string; all?: boolean }) {
  return (
    <>
      {columns.map((c) => {
        const values = filterable(table, c);
        const any = all || !c.axis;
        return <Choice key={c.name} id={`${prefix}-only-${c.name}`} label={c.name} value={filter[c.name] ?? ''} options={any ? ['', ...values] : values} names={any ? ['all', ...values] : values} onChange={(v) => onChange({ ...filter, [c.name]: v })} />;
      })}
    </>
  );
}
