// SPDX-License-Identifier: Apache-2.0
// Several reports on one page: the figures side by side, curves against message size, and what differs in the input.
import { useMemo, useState } from 'preact/hooks';
import { Chart, axis, legend } from './chart';
import { leaves } from './config_tree';
import { bytes, change, gbs, percent, ratio, seconds } from './format';
import { Figure } from './number';
import type { Palette } from './palette';
import { curves, limitedBy, type Curve, type Document, type Run } from './report';
import { portions } from './training';
import { Section } from './sections';

export interface Difference {
  pointer: string;
  values: (string | undefined)[];
}

// Values of the configurations that are not the same in all; names, questions and expectations aside.
export function differences(configs: unknown[]): Difference[] {
  const maps = configs.map((c) => new Map(leaves(c).map((l) => [l.pointer, l.value])));
  const pointers = new Set(maps.flatMap((m) => [...m.keys()]));
  const out: Difference[] = [];
  for (const pointer of pointers) {
    if (/^\/(name|question|note|expect)(\/|$)/.test(pointer)) continue;
    const values = maps.map((m) => m.get(pointer));
    if (values.some((v) => v !== values[0])) out.push({ pointer, values });
  }
  return out;
}

const kMostDifferences = 200;

export function Compare({ documents, palette }: { documents: Document[]; palette: Palette }) {
  const runs = documents.flatMap((d) => (d.kind === 'run' ? [{ name: d.name, run: d.run }] : []));
  return (
    <>
      {runs.length > 1 && <Figures runs={runs} palette={palette} />}
      <Curves documents={documents} palette={palette} />
      {runs.length > 1 && <Inputs runs={runs} />}
    </>
  );
}

function Figures({ runs, palette }: { runs: { name: string; run: Run }[]; palette: Palette }) {
  const first = runs[0]!.run;
  const best = Math.min(...runs.map(({ run }) => run.time_s));
  const option = useMemo(() => {
    const training = runs.every(({ run }) => run.jobs[0]?.compute_s !== undefined);
    const names = runs.map((r) => r.name);
    const common = {
      legend: legend(palette),
      tooltip: { trigger: 'axis', axisPointer: { type: 'shadow' }, backgroundColor: palette.card, borderColor: palette.line, textStyle: { color: palette.ink }, valueFormatter: (v: number) => (v === undefined ? '–' : seconds(v)) },
      xAxis: axis(palette, { type: 'value', axisLabel: { formatter: seconds } }),
      yAxis: axis(palette, { type: 'category', inverse: true, data: names, splitLine: { show: false }, axisLabel: { width: 210, overflow: 'truncate' } }),
    };
    if (training) {
      const cut = runs.map(({ run }) => portions(run.jobs[0]!));
      const kinds = [...new Set(cut.flatMap((parts) => parts.map((p) => p.name)))];
      return { ...common, series: kinds.map((kind, i) => ({ name: kind, type: 'bar', stack: 'step', barMaxWidth: 26, itemStyle: { color: kind === 'compute' ? palette.kinds['compute'] : kind === 'bubble' ? palette.faint : palette.series[(i % 6) + 1] }, data: cut.map((parts) => parts.find((p) => p.name === kind)?.seconds ?? 0) })) };
    }
    return { ...common, series: [
      { name: 'time', type: 'bar', barMaxWidth: 16, itemStyle: { color: palette.series[0], borderRadius: 3 }, data: runs.map(({ run }) => run.time_s) },
      { name: 'bound', type: 'bar', barMaxWidth: 16, itemStyle: { color: palette.series[5], borderRadius: 3 }, data: runs.map(({ run }) => run.bound_s) },
    ] };
  }, [runs, palette]);
  return (
    <Section id="compare" title="Side by side" note={`Changes are against ${runs[0]!.name}.`}>
      <Chart id="compare-chart" label="time of each report" height={70 + 48 * runs.length} palette={palette} option={option} />
      <div class="scroll">
        <table id="compare-table">
          <thead><tr><th>report</th><th>fabric</th><th>fidelity</th><th class="n">time</th><th class="n">change</th><th class="n">bound</th><th class="n">time over bound</th><th class="n">bus bandwidth</th><th>first bottleneck</th><th class="n">gain if infinite</th></tr></thead>
          <tbody>
            {runs.map(({ name, run }, i) => {
              const limit = limitedBy(run);
              return (
                <tr key={i} class={run.time_s === best ? 'best' : ''}>
                  <td>{name}{run.time_s === best && runs.length > 1 ? <span class="badge">fastest</span> : null}</td><td>{run.fabric}</td><td>{run.fidelity}</td>
                  <td class="n"><Figure run={run} path="/time_s" format={seconds} /></td>
                  <td class="n">{i === 0 ? '' : change(first.time_s, run.time_s)}</td>
                  <td class="n"><Figure run={run} path="/bound_s" format={seconds} /></td>
                  <td class="n">{run.bound_s > 0 ? ratio(run.time_s / run.bound_s) : '–'}</td>
                  <td class="n">{run.jobs[0]?.busbw_gbs !== undefined ? <Figure run={run} path="/jobs/0/busbw_gbs" format={gbs} /> : '–'}</td>
                  <td>{limit?.resource ?? 'none'}</td>
                  <td class="n">{limit ? `${seconds(limit.gain_if_infinite_s ?? 0)} (${percent((limit.gain_if_infinite_s ?? 0) / run.time_s)})` : '–'}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

const kLegendLine = 20;
const kSymbols = ['circle', 'rect', 'triangle', 'diamond', 'roundRect', 'pin', 'arrow'];

export function Curves({ documents, palette }: { documents: Document[]; palette: Palette }) {
  const all = useMemo(() => curves(documents), [documents]);
  const worthwhile = all.some((c) => c.points.length > 1) || (documents.length > 1 && all.length > 0);
  const chart = (value: (p: Curve['points'][number]) => number, format: (v: number) => string, name: string) => ({
    legend: legend(palette, { orient: 'vertical', itemGap: 5, textStyle: { color: palette.muted, fontSize: 11.5 } }),
    tooltip: { trigger: 'item', backgroundColor: palette.card, borderColor: palette.line, textStyle: { color: palette.ink },
      formatter: (p: { seriesName: string; value: [number, number] }) => `${p.seriesName}<br>${bytes(p.value[0])}: <b>${format(p.value[1])}</b>` },
    grid: { left: 8, right: 26, top: 24 + kLegendLine * all.length, bottom: 8, containLabel: true },
    xAxis: axis(palette, { type: 'log', logBase: 2, axisLabel: { formatter: (v: number) => bytes(v), hideOverlap: true }, splitLine: { show: false } }),
    yAxis: axis(palette, { type: 'log', name, nameLocation: 'end', axisLabel: { formatter: (v: number) => format(v) } }),
    series: all.map((c, i) => ({
      name: c.name, type: c.measured ? 'scatter' : 'line', symbol: kSymbols[i % kSymbols.length], symbolSize: c.measured ? 9 : c.points.length > 24 ? 4 : 7, lineStyle: { width: 2 },
      itemStyle: { color: palette.series[i % palette.series.length] }, data: c.points.filter((p) => p.bytes > 0 && value(p) > 0).map((p) => [p.bytes, value(p)]),
    })),
  });
  const bandwidth = useMemo(() => chart((p) => p.busbw_gbs, (v) => gbs(v), ''), [all, palette]);
  const latency = useMemo(() => chart((p) => p.time_s, seconds, ''), [all, palette]);
  if (!worthwhile) return null;
  return (
    <Section id="curves" title="Against message size" note="Both axes are logarithmic. Lines are predictions, single points are measurements.">
      <div class="grid2">
        <div><h3>Bus bandwidth</h3><Chart id="bandwidth-chart" label="bus bandwidth against message size" height={300 + kLegendLine * all.length} palette={palette} option={bandwidth} /></div>
        <div><h3>Time</h3><Chart id="latency-chart" label="time against message size" height={300 + kLegendLine * all.length} palette={palette} option={latency} /></div>
      </div>
      <details>
        <summary>The points as a table</summary>
        <div class="scroll tall">
          <table id="curves-table"><thead><tr><th>curve</th><th class="n">size</th><th class="n">time</th><th class="n">bus bandwidth</th></tr></thead>
            <tbody>{all.flatMap((c) => c.points.map((p, i) => (<tr key={`${c.name}${i}`}><td>{c.name}</td><td class="n">{bytes(p.bytes)}</td><td class="n">{seconds(p.time_s)}</td><td class="n">{gbs(p.busbw_gbs)}</td></tr>)))}</tbody></table>
        </div>
      </details>
    </Section>
  );
}

function Inputs({ runs }: { runs: { name: string; run: Run }[] }) {
  const found = useMemo(() => differences(runs.map((r) => r.run.effective)), [runs]);
  const [all, setAll] = useState(false);
  const shown = all ? found : found.slice(0, kMostDifferences);
  return (
    <Section id="inputs" title="What differs in the input" note={found.length === 0 ? 'Nothing: the effective configurations are the same.' : `${found.length} values of the effective configuration.`}>
      {found.length > 0 && (
        <div class="scroll tall">
          <table id="differences-table"><thead><tr><th>pointer</th>{runs.map((r) => <th key={r.name}>{r.name}</th>)}</tr></thead>
            <tbody>{shown.map((d) => (<tr key={d.pointer}><td><code>{d.pointer}</code></td>{d.values.map((v, i) => (<td key={i} class={v === undefined ? 'absent' : ''}>{v ?? 'absent'}</td>))}</tr>))}</tbody></table>
          {shown.length < found.length && <button type="button" onClick={() => setAll(true)}>show the other {found.length - shown.length}</button>}
        </div>
      )}
    </Section>
  );
}
