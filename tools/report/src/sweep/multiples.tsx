// SPDX-License-Identifier: Apache-2.0
// Small multiples: one output along one axis, lines for a second, panels for a third, all on the same scales.
import { useMemo, useState } from 'preact/hooks';
import { Chart, axis, legend } from '../chart';
import { heat, type Palette } from '../palette';
import { Section } from '../sections';
import { Choice, Filters } from './choices';
import { filterable, formatOf, kept, labelAt, panels, spansWide, type Column, type Filter, type Point, type Table } from './table';

const kMostPanels = 30;

export function Multiples({ table, columns, palette }: { table: Table; columns: Column[]; palette: Palette }) {
  const varied = columns.filter((c) => c.axis && c.axis.labels.length > 1 && !c.follows);
  const numeric = varied.filter((c) => c.numeric).sort((a, b) => b.axis!.labels.length - a.axis!.labels.length);
  const outputs = columns.filter((c) => !c.axis && c.numeric);
  const [y, setY] = useState(outputs[0]?.name ?? '');
  const [x, setX] = useState(numeric[0]?.name ?? '');
  const others = varied.filter((c) => c.name !== x);
  const [line, setLine] = useState(others[0]?.name ?? '');
  const [panel, setPanel] = useState(others[1]?.name ?? '');
  const [filter, setFilter] = useState<Filter>({});
  const find = (name: string) => columns.find((c) => c.name === name) ?? null;
  const colX = find(x), colY = find(y), colLine = find(line === x ? '' : line), colPanel = find(panel === x || panel === line ? '' : panel);
  const used = [colX, colLine, colPanel];
  // Axes that the charts do not show stand still, at their first value unless told.
  const fixed = columns.filter((c) => !used.includes(c) && filterable(table, c).length > 1);
  const chosen: Filter = Object.fromEntries(fixed.map((c) => [c.name, filter[c.name] ?? (c.axis ? c.axis.labels[0]! : '')]));
  const key = JSON.stringify([x, y, line, panel, chosen]);
  const shown = useMemo(() => {
    if (!colX || !colY) return [];
    const points = table.points.filter((p) => p.error === '' && kept(fixed, chosen, p));
    return panels(points, colX, colY, colLine, colPanel);
  }, [table, key]);
  const names = useMemo(() => [...new Set(shown.flatMap((p) => p.lines.map((l) => l.name)))], [shown]);
  const charts = useMemo(() => (colX && colY ? shown.slice(0, kMostPanels).map((p) => option(p.lines, shown.flatMap((s) => s.lines.flatMap((l) => l.points)), colX, colY, names, columns, palette)) : []), [shown, palette]);
  if (!colX || !colY) return <Section id="multiples" title="Small multiples"><p class="note">There is no axis of numbers, or no output that is one.</p></Section>;
  return (
    <Section id="multiples" title="Small multiples" note="Every panel has the same scales.">
      <div class="toolbar">
        <Choice id="multiples-y" label="show" value={y} options={outputs.map((c) => c.name)} onChange={setY} />
        <Choice id="multiples-x" label="along" value={x} options={numeric.map((c) => c.name)} onChange={setX} />
        <Choice id="multiples-line" label="lines" value={colLine?.name ?? ''} options={['', ...varied.filter((c) => c.name !== x).map((c) => c.name)]} onChange={setLine} />
        <Choice id="multiples-panel" label="panels" value={colPanel?.name ?? ''} options={['', ...varied.filter((c) => c.name !== x && c.name !== line).map((c) => c.name)]} onChange={setPanel} />
        <Filters table={table} columns={fixed} filter={chosen} onChange={setFilter} prefix="multiples" />
      </div>
      {colLine && (
        <p class="keys" id="multiples-keys">{names.map((name, i) => (<span key={name}><i style={{ background: colour(palette, i, names.length) }} />{colLine.name} {name}</span>))}</p>
      )}
      {shown.length === 0 && <p class="warning">No point is left with these values.</p>}
      <div class="multiples">
        {shown.slice(0, kMostPanels).map((p, i) => (
          <div key={p.name}>
            {colPanel && <h3>{colPanel.name} {p.name}</h3>}
            <Chart id={`multiples-chart-${i}`} label={`${y} along ${x}${colPanel ? `, ${colPanel.name} ${p.name}` : ''}`} height={230} palette={palette} option={charts[i]!} />
          </div>
        ))}
      </div>
      {shown.length > kMostPanels && <p class="hint">{shown.length - kMostPanels} more panels are left out.</p>}
    </Section>
  );
}

// Kinds have colours of their own; many of them have steps of one scale, whose pale end is left out.
const colour = (palette: Palette, i: number, of: number): string =>
  of <= palette.series.length ? palette.series[i]! : heat(palette, 0.15 + (0.85 * i) / (of - 1));

type Placed = { p: Point; x: number; y: number };

function option(lines: { name: string; points: Placed[] }[], all: Placed[], x: Column, y: Column, names: string[], columns: Column[], palette: Palette): Record<string, unknown> {
  const xs = all.map((q) => q.x), ys = all.map((q) => q.y);
  const logX = spansWide(xs), logY = spansWide(ys);
  const formatX = formatOf(x), formatY = formatOf(y);
  const describe = (q: Placed) => columns.map((c) => `${c.name}: ${escape(labelAt(c, q.p))}`).join('<br>');
  return {
    legend: legend(palette, { show: false }),
    tooltip: { trigger: 'item', backgroundColor: palette.card, borderColor: palette.line, textStyle: { color: palette.ink, fontSize: 12 }, confine: true, formatter: (hit: { data: { q: Placed } }) => describe(hit.data.q) },
    grid: { left: 8, right: 18, top: 14, bottom: 8, containLabel: true },
    xAxis: axis(palette, { type: logX ? 'log' : 'value', min: Math.min(...xs), max: Math.max(...xs), axisLabel: { formatter: formatX, hideOverlap: true }, splitLine: { show: false } }),
    yAxis: axis(palette, { type: logY ? 'log' : 'value', min: logY ? below(Math.min(...ys)) : Math.min(0, ...ys), max: logY ? undefined : above(Math.max(...ys)), axisLabel: { formatter: formatY, hideOverlap: true } }),
    series: lines.map((line) => {
      const i = names.indexOf(line.name);
      return { name: line.name || y.name, type: 'line', symbolSize: 5, showSymbol: line.points.length <= 60, lineStyle: { width: 1.8 }, itemStyle: { color: colour(palette, i, names.length) }, data: line.points.map((q) => ({ value: [q.x, q.y], q })) };
    }),
  };
}

const below = (value: number): number => 10 ** Math.floor(Math.log10(value));
// The next round number, the same for all panels.
const above = (value: number): number => (value > 0 ? Math.ceil((value / below(value)) * 2) / 2 * below(value) : 0);
export const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').slice(0, 200);
