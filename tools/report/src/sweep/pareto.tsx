// SPDX-License-Identifier: Apache-2.0
// The best compromises between two columns: a point is on the front when no other is better in one and no worse in the other.
import { useMemo, useState } from 'preact/hooks';
import { Chart, axis, legend } from '../chart';
import type { Palette } from '../palette';
import { Section } from '../sections';
import { Choice, Filters } from './choices';
import { escape } from './multiples';
import { filterable, formatOf, front, kept, labelAt, numberAt, spansWide, type Best, type Column, type Filter, type Point, type Table } from './table';

// What is usually wanted of a column of this name.
const wanted = (name: string): Best => (/(_gbs|per_s|mfu|bandwidth|goodput)$/.test(name) ? 'max' : 'min');

function begin(table: Table, numeric: Column[]): [string, Best, string, Best] {
  const asked = [...(table.pareto?.minimise ?? []).map((n) => [n, 'min'] as const), ...(table.pareto?.maximise ?? []).map((n) => [n, 'max'] as const)];
  if (asked.length === 2) {
    const [first, second] = asked.sort((a, b) => Number(numeric.some((c) => c.axis && c.name === b[0])) - Number(numeric.some((c) => c.axis && c.name === a[0])));
    return [first![0], first![1], second![0], second![1]];
  }
  const y = numeric.find((c) => !c.axis)?.name ?? '', x = numeric.find((c) => c.axis)?.name ?? numeric.find((c) => c.name !== y)?.name ?? '';
  return [x, wanted(x), y, wanted(y)];
}

const kMostRows = 100;

export function Pareto({ table, columns, palette }: { table: Table; columns: Column[]; palette: Palette }) {
  const numeric = columns.filter((c) => c.numeric);
  const start = useMemo(() => begin(table, numeric), [table]);
  const [x, setX] = useState(start[0]);
  const [bestX, setBestX] = useState<Best>(start[1]);
  const [y, setY] = useState(start[2]);
  const [bestY, setBestY] = useState<Best>(start[3]);
  const [filter, setFilter] = useState<Filter>({});
  const colX = numeric.find((c) => c.name === x), colY = numeric.find((c) => c.name === y);
  const others = columns.filter((c) => c.name !== x && c.name !== y && filterable(table, c).length > 1);
  const found = useMemo(() => {
    const points = table.points.filter((p) => p.error === '' && kept(others, filter, p));
    return { points, best: colX && colY ? front(points, colX, colY, bestX, bestY) : [] };
  }, [table, x, y, bestX, bestY, filter]);
  const option = useMemo(() => (colX && colY ? chart(found.points, found.best, colX, colY, columns, palette) : {}), [found, palette]);
  if (!colX || !colY) return null;
  return (
    <Section id="front" title="Best compromises" note="A point is on the front when no other is better in one of the two and no worse in the other.">
      <div class="toolbar">
        <Choice id="front-x" label="across" value={x} options={numeric.map((c) => c.name)} onChange={setX} />
        <Choice id="front-x-best" label="wanted" value={bestX} options={['min', 'max']} names={['small', 'large']} onChange={(v) => setBestX(v as Best)} />
        <Choice id="front-y" label="up" value={y} options={numeric.map((c) => c.name)} onChange={setY} />
        <Choice id="front-y-best" label="wanted" value={bestY} options={['min', 'max']} names={['small', 'large']} onChange={(v) => setBestY(v as Best)} />
        <Filters table={table} columns={others} filter={filter} onChange={setFilter} prefix="front" all />
      </div>
      <Chart id="front-chart" label={`${y} against ${x}, and the front`} height={380} palette={palette} option={option} />
      <h3>{found.best.length} of {found.points.length} points are on the front</h3>
      <div class="scroll tall">
        <table id="front-table">
          <thead><tr><th class="n">point</th>{columns.map((c) => (<th key={c.name} class={c.numeric ? 'n' : ''}>{c.name}</th>))}</tr></thead>
          <tbody>{found.best.slice(0, kMostRows).map((p) => (<tr key={p.point}><td class="n">{p.point}</td>{columns.map((c) => (<td key={c.name} class={c.numeric ? 'n' : ''}>{labelAt(c, p)}</td>))}</tr>))}</tbody>
        </table>
      </div>
      {found.best.length > kMostRows && <p class="hint">{found.best.length - kMostRows} more are left out here.</p>}
    </Section>
  );
}

function chart(points: Point[], best: Point[], x: Column, y: Column, columns: Column[], palette: Palette): Record<string, unknown> {
  const place = (p: Point) => ({ value: [numberAt(x, p), numberAt(y, p)], p });
  const xs = points.flatMap((p) => numberAt(x, p) ?? []), ys = points.flatMap((p) => numberAt(y, p) ?? []);
  return {
    legend: legend(palette),
    tooltip: { trigger: 'item', backgroundColor: palette.card, borderColor: palette.line, textStyle: { color: palette.ink, fontSize: 12 }, confine: true, formatter: (hit: { data: { p: Point } }) => columns.map((c) => `${c.name}: ${escape(labelAt(c, hit.data.p))}`).join('<br>') },
    grid: { left: 8, right: 24, top: 40, bottom: 24, containLabel: true },
    xAxis: axis(palette, { type: spansWide(xs) ? 'log' : 'value', scale: true, name: x.name, nameLocation: 'middle', nameGap: 26, axisLabel: { formatter: formatOf(x), hideOverlap: true } }),
    yAxis: axis(palette, { type: spansWide(ys) ? 'log' : 'value', scale: true, name: y.name, axisLabel: { formatter: formatOf(y) } }),
    series: [
      { name: 'points', type: 'scatter', symbolSize: 6, large: points.length > 5000, itemStyle: { color: palette.faint, opacity: 0.6 }, data: points.map(place) },
      { name: 'front', type: 'line', symbolSize: 9, symbol: 'circle', lineStyle: { width: 2, type: 'dashed' }, itemStyle: { color: palette.series[1] }, data: best.map(place) },
    ],
  };
}
