// SPDX-License-Identifier: Apache-2.0
// A training or serving job: where the step's time goes, what each dimension of the plan exposes, what fills the memory.
import { useMemo } from 'preact/hooks';
import { Chart, axis, legend } from './chart';
import { bytes, count, decimalBytes, flops, percent, seconds } from './format';
import { Figure } from './number';
import type { Palette } from './palette';
import type { Job, Run } from './report';
import { Section, type Part } from './sections';

export const kDimensionNames: Record<string, string> = {
  tp: 'tensor parallel', pp: 'pipeline', dp: 'data parallel', edp: 'expert data parallel', ep: 'expert parallel', cp: 'context parallel', embed: 'embeddings', other: 'other',
};
const kDimensions = ['tp', 'cp', 'ep', 'pp', 'dp', 'edp', 'embed', 'other'];

export interface Portion {
  name: string;
  seconds: number;
  path: string; // below the job
}

// The step cut up: compute, exposed communication by dimension, and the bubble, which is idle time.
export function portions(job: Job): Portion[] {
  const out: Portion[] = [];
  if (job.compute_s !== undefined) out.push({ name: 'compute', seconds: job.compute_s, path: 'compute_s' });
  const exposed = job.exposed_comm_s ?? {};
  for (const d of [...kDimensions, ...Object.keys(exposed).filter((k) => !kDimensions.includes(k))]) {
    if ((exposed[d] ?? 0) > 0) out.push({ name: kDimensionNames[d] ?? d, seconds: exposed[d]!, path: `exposed_comm_s/${d}` });
  }
  if (job.bubble_fraction !== undefined && job.bubble_fraction > 0) out.push({ name: 'bubble', seconds: job.bubble_fraction * (job.step_time_s ?? job.time_s), path: '' });
  return out;
}

function StepBar({ job, index, palette }: { job: Job; index: number; palette: Palette }) {
  const parts = useMemo(() => portions(job), [job]);
  const option = useMemo(() => ({
    legend: legend(palette),
    tooltip: { trigger: 'item', backgroundColor: palette.card, borderColor: palette.line, textStyle: { color: palette.ink }, valueFormatter: seconds },
    grid: { left: 8, right: 24, top: 34, bottom: 4, containLabel: true },
    xAxis: axis(palette, { type: 'value', axisLabel: { formatter: seconds } }),
    yAxis: axis(palette, { type: 'category', data: ['step'], splitLine: { show: false }, axisLabel: { show: false } }),
    series: parts.map((p, i) => ({
      name: p.name, type: 'bar', stack: 'step', barWidth: 38, data: [p.seconds],
      itemStyle: { color: p.name === 'compute' ? palette.kinds['compute'] : p.name === 'bubble' ? palette.faint : palette.series[(i % 6) + 1] },
    })),
  }), [parts, palette]);
  return <Chart id={`step-chart-${index}`} label={`the step of ${job.name}: ${parts.map((p) => `${p.name} ${seconds(p.seconds)}`).join(', ')}`} height={140} palette={palette} option={option} />;
}

function Exposed({ run, job, index, palette }: { run: Run; job: Job; index: number; palette: Palette }) {
  const entries = kDimensions.filter((d) => (job.exposed_comm_s?.[d] ?? 0) > 0 || (job.comm_bytes?.[d] ?? 0) > 0);
  const option = useMemo(() => ({
    tooltip: { trigger: 'axis', axisPointer: { type: 'shadow' }, backgroundColor: palette.card, borderColor: palette.line, textStyle: { color: palette.ink }, valueFormatter: seconds },
    grid: { left: 8, right: 30, top: 8, bottom: 4, containLabel: true },
    xAxis: axis(palette, { type: 'value', axisLabel: { formatter: seconds, hideOverlap: true } }),
    yAxis: axis(palette, { type: 'category', inverse: true, data: entries.map((d) => kDimensionNames[d] ?? d), splitLine: { show: false } }),
    series: [{ type: 'bar', barMaxWidth: 16, itemStyle: { color: palette.series[1], borderRadius: 3 }, data: entries.map((d) => job.exposed_comm_s![d]!) }],
  }), [job, palette]);
  if (entries.length === 0) return null;
  return (
    <div>
      <h3>Exposed communication by dimension</h3>
      <Chart id={`exposed-chart-${index}`} label="exposed communication by dimension" height={40 + 26 * entries.length} palette={palette} option={option} />
      <table>
        <thead><tr><th>dimension</th><th class="n">exposed</th><th class="n">of the step</th><th class="n">bytes of a rank</th></tr></thead>
        <tbody>
          {entries.map((d) => (
            <tr key={d}><td>{kDimensionNames[d] ?? d}</td>
              <td class="n"><Figure run={run} path={`/jobs/${index}/exposed_comm_s/${d}`} format={seconds} /></td>
              <td class="n">{percent(job.exposed_comm_s![d]! / (job.step_time_s ?? job.time_s))}</td>
              <td class="n">{job.comm_bytes?.[d] !== undefined ? <Figure run={run} path={`/jobs/${index}/comm_bytes/${d}`} format={bytes} /> : '–'}</td></tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Memory({ run, job, index, palette }: { run: Run; job: Job; index: number; palette: Palette }) {
  const memory = job.memory_bytes_per_gpu;
  if (!memory) return null;
  const parts = Object.entries(memory).filter(([k, v]) => k !== 'total' && k !== 'capacity' && typeof v === 'number');
  const capacity = memory['capacity'] ?? 0, total = memory['total'] ?? parts.reduce((n, [, v]) => n + v, 0);
  const scale = Math.max(capacity, total) || 1;
  return (
    <div>
      <h3>Memory of a GPU</h3>
      <div class="stack tall" role="img" aria-label={`${decimalBytes(total)} of ${decimalBytes(capacity)}`}>
        {parts.map(([k, v], i) => v > 0 && (<span key={k} title={`${k}: ${decimalBytes(v)}`} style={{ width: `${(100 * v) / scale}%`, background: palette.series[i % 8] }} />))}
      </div>
      <table>
        <tbody>
          {parts.map(([k], i) => (<tr key={k}><td><i class="swatch" style={{ background: palette.series[i % 8] }} />{k.replaceAll('_', ' ')}</td><td class="n"><Figure run={run} path={`/jobs/${index}/memory_bytes_per_gpu/${k}`} format={decimalBytes} /></td></tr>))}
          <tr class="sum"><td>total</td><td class="n"><Figure run={run} path={`/jobs/${index}/memory_bytes_per_gpu/total`} format={decimalBytes} /></td></tr>
          <tr><td>capacity{job.fits === false ? ' (does not fit)' : ''}</td><td class="n"><Figure run={run} path={`/jobs/${index}/memory_bytes_per_gpu/capacity`} format={decimalBytes} /></td></tr>
        </tbody>
      </table>
    </div>
  );
}

// A switch is told by its name, anything else by name and value.
export function spelt(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  const on = Object.entries(value).flatMap(([k, v]) => (v === false ? [] : [v === true ? k : `${k} ${String(v)}`]));
  return on.length === 0 ? 'none' : on.join(', ').replaceAll('_', ' ');
}

const kFacts: [key: string, name: string, format: (v: number) => string][] = [
  ['step_time_s', 'step', seconds], ['mfu', 'MFU', percent], ['tokens_per_s', 'tokens/s', count], ['model_flops_per_s_per_gpu', 'model FLOP/s per GPU', flops],
  ['compute_s', 'compute', seconds], ['bubble_fraction', 'bubble', percent], ['days_to_tokens', 'days', count], ['requests_per_s', 'requests/s', count], ['output_tokens_per_s', 'output tokens/s', count],
];

export function Training(part: Part) {
  const { run, palette } = part;
  const jobs = run.jobs.map((job, i) => ({ job, i })).filter(({ job }) => job.compute_s !== undefined || job.memory_bytes_per_gpu !== undefined || job.plan !== undefined);
  if (jobs.length === 0) return null;
  return (
    <Section id="step" title="Where the step goes" note="Mean over the ranks: computing, waiting for communication that nothing hides, and idle by the schedule.">
      {jobs.map(({ job, i }) => (
        <div key={i}>
          {jobs.length > 1 && <h3>{job.name}</h3>}
          {job.compute_s !== undefined && <StepBar job={job} index={i} palette={palette} />}
          <dl class="tiles small">
            {kFacts.map(([key, name, format]) => typeof job[key] === 'number' && (<div key={key}><dt>{name}</dt><dd><Figure run={run} path={`/jobs/${i}/${key}`} format={format} /></dd></div>))}
          </dl>
          {job.plan && <p class="plan">{Object.entries(job.plan).map(([k, v]) => v !== null && (<span key={k}><b>{k.replaceAll('_', ' ')}</b> {spelt(v)}</span>))}</p>}
          <div class="grid2">
            <Exposed run={run} job={job} index={i} palette={palette} />
            <Memory run={run} job={job} index={i} palette={palette} />
          </div>
        </div>
      ))}
    </Section>
  );
}
