// SPDX-License-Identifier: Apache-2.0
// The page of a sweep.
import { useMemo } from 'preact/hooks';
import { Frame, start, useTheme } from '../frame';
import { Multiples } from './multiples';
import { Pareto } from './pareto';
import { Failed, Rows } from './rows';
import { columnsOf, readTable, type Table } from './table';

function App({ table }: { table: Table }) {
  const [palette, theme, setTheme] = useTheme();
  const columns = useMemo(() => columnsOf(table), [table]);
  const failed = table.points.filter((p) => p.error !== '').length;
  const part = { table, columns, palette };
  return (
    <Frame title={table.name} first="The sweep" version={0} theme={theme} setTheme={setTheme}>
      <section class="answer" id="answer" aria-label="the sweep">
        {table.question && <p class="question">{table.question}</p>}
        <p class="headline" id="headline"><strong>{table.points.length} of {table.planned} points</strong> are there{failed > 0 ? <>, <strong>{failed} failed</strong></> : ''}; they differ in {table.axes.filter((a) => a.labels.length > 1).map((a) => a.name).join(', ')}.</p>
        <dl class="tiles">{table.axes.map((a) => (<div key={a.name}><dt>{a.name}</dt><dd>{a.labels.length === 1 ? a.labels[0]!.slice(0, 40) : a.numbers ? `${a.labels[0]} … ${a.labels.at(-1)}` : `${a.labels.length} kinds`}</dd></div>))}</dl>
      </section>
      <Multiples {...part} />
      <Pareto {...part} />
      <Failed table={table} />
      <Rows table={table} columns={columns} />
    </Frame>
  );
}

start((data) => <App table={readTable(data)} />);
