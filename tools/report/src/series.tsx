// SPDX-License-Identifier: Apache-2.0
// Links over time, and who paused whom: what a run was asked to observe.
import { useMemo } from 'preact/hooks';
import { Chart, axis, legend } from './chart';
import { bytes, gbs, percent, seconds } from './format';
import { Figure } from './number';
import type { Run } from './report';
import { Section, type Part } from './sections';

type Series = NonNullable<Run['link_series']>[number];
type FlowSeries = NonNullable<Run['flow_series']>[number];

const kMostLines = 8;

// [time, value] at the middle of each window.
export function points(series: { every_s: number }, values: number[]): [number, number][] {
  return values.map((v, i) => [(i + 0.5) * series.every_s, v]);
}

export const rates = (series: { every_s: number; bytes: number[] }): number[] => series.bytes.map((b) => b / series.every_s / 1e9);

// What every chart over time has.
const over = (palette: Part['palette'], format: (v: number) => string, lines: { name: string; data: [number, number][] }[]) => ({
  legend: legend(palette, { type: 'scroll' }),
  tooltip: { trigger: 'axis', backgroundColor: palette.card, borderColor: palette.line, textStyle: { color: palette.ink }, valueFormatter: format },
  grid: { left: 8, right: 20, top: 36, bottom: 8, containLabel: true },
  xAxis: axis(palette, { type: 'value', axisLabel: { formatter: seconds, hideOverlap: true }, splitLine: { show: false } }),
  yAxis: axis(palette, { type: 'value', axisLabel: { formatter: format } }),
  dataZoom: [{ type: 'inside', zoomOnMouseWheel: 'ctrl' }],
  series: lines.map((line, i) => ({ ...line, type: 'line', showSymbol: false, lineStyle: { width: 1.6 }, itemStyle: { color: palette.series[i % 8] } })),
});

function FlowsOverTime({ all, palette }: { all: FlowSeries[]; palette: Part['palette'] }) {
  const shown = all.slice(0, kMostLines);
  const title = 'Rate of arrival';
  const lines = shown.map((s) => ({ name: s.id, data: points(s, rates(s)) }));
  return (
    <Section id="flows-over-time" title="Flows over time" note={`${all.length} observed in windows of ${seconds(all[0]!.every_s)}${all.length > shown.length ? `; the first ${shown.length}` : ''}.`}>
      <Chart id="flow-rate-chart" label={title} height={270} palette={palette} option={over(palette, gbs, lines)} />
    </Section>
  );
}

export function OverTime({ run, palette }: Part) {
  const all = run.link_series ?? [];
  const flows = run.flow_series ?? [];
  const shown = useMemo(() => {
    const weight = (s: Series) => s.bytes.reduce((a, b) => a + b, 0);
    return [...all].sort((a, b) => weight(b) - weight(a)).slice(0, kMostLines);
  }, [run]);
  const chart = (id: string, title: string, value: (s: Series) => number[] | undefined, format: (v: number) => string) => {
    const lines = shown.filter((s) => (value(s) ?? []).some((v) => v > 0));
    if (lines.length === 0) return null;
    const option = over(palette, format, lines.map((s) => ({ name: s.id, data: points(s, value(s)!) })));
    return <div key={id}><h3>{title}</h3><Chart id={id} label={title} height={270} palette={palette} option={option} /></div>;
  };
  const pauses = run.pauses ?? [], victims = run.victims ?? [];
  if (all.length === 0 && flows.length === 0 && pauses.length === 0) return null;
  return (
    <>
      {all.length > 0 && (
        <Section id="over-time" title="Links over time" note={`${all.length} observed in windows of ${seconds(all[0]!.every_s)}${all.length > shown.length ? `; the ${shown.length} that carried most` : ''}.`}>
          <div class="grid2">
            {chart('series-rate-chart', 'Rate', rates, gbs)}
            {chart('series-queue-chart', 'Deepest queue', (s) => s.queue_max_bytes, bytes)}
            {chart('series-pause-chart', 'Share of the window paused', (s) => s.pfc_paused, percent)}
          </div>
        </Section>
      )}
      {flows.length > 0 && <FlowsOverTime all={flows} palette={palette} />}
      {pauses.length > 0 && (
        <Section id="pauses" title="Who paused whom">
          {victims.length > 0 && <ul>{victims.map((v) => (<li key={v.text}>{v.text}</li>))}</ul>}
          <div class="scroll tall">
            <table><thead><tr><th>paused</th><th>by</th><th>because of the queue to</th><th class="n">pauses</th><th class="n">time</th></tr></thead>
              <tbody>{pauses.map((p, i) => (<tr key={i}><td>{p.paused}</td><td>{p.by}</td><td>{p.because_of}</td><td class="n"><Figure run={run} path={`/pauses/${i}/pauses`} format={String} /></td><td class="n"><Figure run={run} path={`/pauses/${i}/pfc_pause_s`} format={seconds} /></td></tr>))}</tbody></table>
          </div>
        </Section>
      )}
    </>
  );
}
