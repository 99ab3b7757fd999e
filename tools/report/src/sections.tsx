// SPDX-License-Identifier: Apache-2.0
// The parts of a run's page, each from the keys of the report named in it.
import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { Chart, axis, legend } from './chart';
import { bytes, count, gbs, percent, ratio, seconds } from './format';
import { Figure } from './number';
import type { Palette } from './palette';
import { limitedBy, type Run } from './report';

export interface Part {
  run: Run;
  palette: Palette;
}

export function Section({ id, title, note, children }: { id: string; title: string; note?: string; children: ComponentChildren }) {
  return (
    <section id={id} aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{title}</h2>
      {note && <p class="note">{note}</p>}
      {children}
    </section>
  );
}

const noun = (kind: string): string => ({ all_reduce: 'all-reduce', all_gather: 'all-gather', reduce_scatter: 'reduce-scatter', all_to_all: 'all-to-all', send_recv: 'send and receive' })[kind] ?? kind.replaceAll('_', ' ');
const plural = (n: number, what: string): string => `${count(n)} ${what}${n === 1 ? '' : 's'}`;

// What ran, in words.
export function subject(run: Run): string {
  const job = run.jobs[0];
  if (!job) return 'Nothing ran';
  const others = run.jobs.length > 1 ? ` and ${plural(run.jobs.length - 1, 'more job')}` : '';
  if (job.collective) return `${noun(job.collective)} of ${bytes(job.bytes)} over ${job.ranks} GPUs${others}`;
  if (job.kind === 'training') return `A training step on ${count(job.ranks)} GPUs${others}`;
  if (job.kind === 'inference') return `Inference on ${count(job.ranks)} GPUs${others}`;
  return `${bytes(job.bytes)} in ${job.kind === 'p2p' ? 'one transfer' : 'flows'}${others}`;
}

export function Answer({ run }: Part) {
  const limit = limitedBy(run);
  const gain = limit ? run.bottlenecks.indexOf(limit) : -1;
  const busiest = run.bottlenecks[0];
  const what = subject(run);
  return (
    <section id="answer" class="answer" aria-label="the answer">
      {run.question && <p class="question">{run.question}</p>}
      <p class="headline">
        {what[0]!.toUpperCase() + what.slice(1)} on {run.fabric} takes <strong><Figure run={run} path="/time_s" format={seconds} /></strong>
        {run.bound_s > 0 && (
          <>, <strong>{ratio(run.time_s / run.bound_s)}</strong> the bound of <Figure run={run} path="/bound_s" format={seconds} /> that {run.bound_by} sets</>
        )}.{' '}
        {limit ? (
          <>First bottleneck: <strong>{limit.resource}</strong>; infinitely fast it would save <Figure run={run} path={`/bottlenecks/${gain}/gain_if_infinite_s`} format={seconds} /> ({percent((limit.gain_if_infinite_s ?? 0) / run.time_s)}).</>
        ) : run.bottlenecks.some((b) => b.gain_if_infinite_s !== null) ? (
          <>No single kind of link limits it: what remains is latency or the pace of the operation itself.</>
        ) : busiest ? (
          <>What each kind of link costs was not computed; the busiest is <strong>{busiest.resource}</strong>, in use for <Figure run={run} path="/bottlenecks/0/share" format={percent} /> of the time.</>
        ) : null}
      </p>
      <dl class="tiles">
        <Tile name="time"><Figure run={run} path="/time_s" format={seconds} /></Tile>
        <Tile name="bound"><Figure run={run} path="/bound_s" format={seconds} /></Tile>
        <Tile name="time over bound">{run.bound_s > 0 ? ratio(run.time_s / run.bound_s) : '–'}</Tile>
        {run.jobs[0]?.busbw_gbs !== undefined && <Tile name="bus bandwidth"><Figure run={run} path="/jobs/0/busbw_gbs" format={gbs} /></Tile>}
        {run.jobs[0]?.mfu !== undefined && <Tile name="MFU"><Figure run={run} path="/jobs/0/mfu" format={percent} /></Tile>}
        {run.jobs[0]?.mean_rate_gbs !== undefined && <Tile name="mean rate of a flow"><Figure run={run} path="/jobs/0/mean_rate_gbs" format={gbs} /></Tile>}
        <Tile name="fidelity">{run.fidelity}</Tile>
        <Tile name="events"><Figure run={run} path="/events" format={count} /></Tile>
      </dl>
      {run.warnings.map((w) => (<p class="warning" key={w.code + w.text}><b>{w.code}</b> {w.text}</p>))}
    </section>
  );
}

function Tile({ name, children }: { name: string; children: ComponentChildren }) {
  return <div><dt>{name}</dt><dd>{children}</dd></div>;
}

export function Jobs({ run }: Part) {
  return (
    <Section id="jobs" title="Jobs">
      <div class="scroll">
        <table>
          <thead><tr><th>job</th><th>what</th><th class="n">GPUs</th><th class="n">bytes</th><th class="n">time</th><th class="n">start</th><th class="n">finish</th><th class="n">runs</th><th class="n">alg. bandwidth</th><th class="n">bus bandwidth</th></tr></thead>
          <tbody>
            {run.jobs.map((job, i) => (
              <tr key={i}>
                <td>{job.name}</td>
                <td>{job.collective ? `${noun(job.collective)}, ${job.algorithm}, ${plural(job.channels ?? 1, 'channel')}` : job.kind}{(job.notes ?? []).map((n) => <div class="hint" key={n}>{n}</div>)}</td>
                <td class="n">{count(job.ranks)}</td>
                <td class="n">{bytes(job.bytes)}</td>
                <td class="n"><Figure run={run} path={`/jobs/${i}/time_s`} format={seconds} /></td>
                <td class="n"><Figure run={run} path={`/jobs/${i}/start_s`} format={seconds} /></td>
                <td class="n"><Figure run={run} path={`/jobs/${i}/finish_s`} format={seconds} /></td>
                <td class="n">{count(job.iterations)}</td>
                <td class="n">{job.algbw_gbs !== undefined ? <Figure run={run} path={`/jobs/${i}/algbw_gbs`} format={gbs} /> : job.mean_rate_gbs !== undefined ? <Figure run={run} path={`/jobs/${i}/mean_rate_gbs`} format={(v) => `${gbs(v)} a flow`} /> : '–'}</td>
                <td class="n">{job.busbw_gbs !== undefined ? <Figure run={run} path={`/jobs/${i}/busbw_gbs`} format={gbs} /> : '–'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

export function Limits({ run, palette }: Part) {
  const items = run.bottlenecks;
  const option = useMemo(() => {
    const names = items.map((b) => b.resource);
    return {
      legend: legend(palette),
      tooltip: { trigger: 'axis', axisPointer: { type: 'shadow' }, backgroundColor: palette.card, borderColor: palette.line, textStyle: { color: palette.ink }, valueFormatter: (v: number) => percent(v) },
      xAxis: axis(palette, { type: 'value', min: 0, max: 1, axisLabel: { formatter: (v: number) => percent(v) } }),
      yAxis: axis(palette, { type: 'category', inverse: true, data: names, splitLine: { show: false } }),
      series: [
        { name: 'busiest link in use', type: 'bar', barMaxWidth: 16, itemStyle: { color: palette.series[5], borderRadius: 3 }, data: items.map((b) => Math.min(1, b.share)) },
        { name: 'time saved if infinitely fast', type: 'bar', barMaxWidth: 16, itemStyle: { color: palette.series[1], borderRadius: 3 }, data: items.map((b) => (run.time_s > 0 ? (b.gain_if_infinite_s ?? 0) / run.time_s : 0)) },
      ],
    };
  }, [items, palette]);
  if (items.length === 0) return null;
  return (
    <Section id="limits" title="What limits it" note="Each kind of link that carries traffic: how busy its busiest link is, and how much sooner the run would end if all of them were infinitely fast.">
      <Chart id="limits-chart" label="load and gain by kind of link" height={70 + 52 * items.length} palette={palette} option={option} />
      <table>
        <thead><tr><th>links</th><th class="n">in use</th><th class="n">gain if infinite</th><th class="n">of the time</th></tr></thead>
        <tbody>
          {items.map((b, i) => (
            <tr key={b.resource}>
              <td>{b.resource}</td>
              <td class="n"><Figure run={run} path={`/bottlenecks/${i}/share`} format={percent} /></td>
              <td class="n">{b.gain_if_infinite_s === null ? '–' : <Figure run={run} path={`/bottlenecks/${i}/gain_if_infinite_s`} format={seconds} />}</td>
              <td class="n">{run.time_s > 0 && b.gain_if_infinite_s !== null ? percent(b.gain_if_infinite_s / run.time_s) : '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

export function CriticalPath({ run }: Part) {
  const path = run.critical_path;
  if (path.length === 0) return null;
  const longest = Math.max(...path.map((s) => s.duration_s));
  return (
    <Section id="critical-path" title="Critical path" note="The chain of operations that set the time, in order: each could start only when the one before it had ended.">
      <div class="scroll">
        <table>
          <thead><tr><th>operation</th><th>what it took its time from</th><th class="n">start</th><th class="n">duration</th><th class="wide-bar" /></tr></thead>
          <tbody>
            {path.map((s, i) => (
              <tr key={i}>
                <td>{s.op}</td>
                <td>{s.resource}</td>
                <td class="n"><Figure run={run} path={`/critical_path/${i}/start_s`} format={seconds} /></td>
                <td class="n"><Figure run={run} path={`/critical_path/${i}/duration_s`} format={seconds} /></td>
                <td><span class="meter" style={{ width: `${longest > 0 ? (100 * s.duration_s) / longest : 0}%` }} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

type LinkKey = 'id' | 'class' | 'tier' | 'bytes' | 'utilisation' | 'peak_queue_bytes' | 'pfc_pause_s' | 'ecn_marks' | 'drops';

export function Links({ run }: Part) {
  const queues = run.links.some((l) => l.peak_queue_bytes !== undefined);
  const [by, setBy] = useState<LinkKey>('utilisation');
  const [down, setDown] = useState(true);
  const [filter, setFilter] = useState('');
  const columns: { key: LinkKey; name: string; format?: (v: number) => string }[] = [
    { key: 'id', name: 'link' }, { key: 'tier', name: 'tier' }, { key: 'class', name: 'class' },
    { key: 'bytes', name: 'bytes', format: bytes }, { key: 'utilisation', name: 'in use', format: percent },
    ...(queues ? ([
      { key: 'peak_queue_bytes', name: 'deepest queue', format: bytes }, { key: 'pfc_pause_s', name: 'paused', format: seconds },
      { key: 'ecn_marks', name: 'ECN marks', format: count }, { key: 'drops', name: 'drops', format: count },
    ] as const) : []),
  ];
  const rows = run.links.map((link, i) => ({ link, i })).filter(({ link }) => `${link.id} ${link.tier} ${link.class}`.toLowerCase().includes(filter.toLowerCase()));
  rows.sort((a, b) => {
    const x = a.link[by] ?? 0, y = b.link[by] ?? 0;
    const order = typeof x === 'string' || typeof y === 'string' ? String(x).localeCompare(String(y), 'en', { numeric: true }) : x - y;
    return (down ? -order : order) || a.i - b.i;
  });
  const sort = (key: LinkKey) => {
    setDown(key === by ? !down : key !== 'id' && key !== 'tier' && key !== 'class');
    setBy(key);
  };
  if (run.links.length === 0) return null;
  const cut = run.left_out?.links ?? 0;
  return (
    <Section id="links" title="Links" note={cut > 0 ? `The ${run.links.length} busiest; ${count(cut)} more carried something (weft run --top shows them).` : undefined}>
      <div class="toolbar"><label class="finder"><span class="hidden">filter links</span><input type="search" placeholder="filter: leaf, nvlink …" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} /></label></div>
      <div class="scroll tall">
        <table id="links-table">
          <thead><tr>{columns.map((c) => (
            <th key={c.key} class={c.format ? 'n' : ''} aria-sort={by === c.key ? (down ? 'descending' : 'ascending') : 'none'}><button type="button" onClick={() => sort(c.key)}>{c.name}{by === c.key ? (down ? ' ↓' : ' ↑') : ''}</button></th>))}</tr></thead>
          <tbody>
            {rows.map(({ link, i }) => (
              <tr key={i}>{columns.map((c) => (
                <td key={c.key} class={c.format ? 'n' : ''}>{c.format ? <Figure run={run} path={`/links/${i}/${c.key}`} format={c.format} /> : link[c.key]}</td>))}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

export function Queues({ run, palette }: Part) {
  const links = useMemo(() => run.links.filter((l) => (l.peak_queue_bytes ?? 0) > 0 || (l.pfc_pause_s ?? 0) > 0 || (l.ecn_marks ?? 0) > 0 || (l.drops ?? 0) > 0), [run]);
  const bar = (id: string, title: string, colour: string, value: (l: Run['links'][number]) => number, format: (v: number) => string) => {
    const shown = links.filter((l) => value(l) > 0).sort((a, b) => value(b) - value(a)).slice(0, 12);
    if (shown.length === 0) return <div class="quiet" key={id}><h3>{title}</h3><p class="hint">none</p></div>;
    const option = {
      tooltip: { trigger: 'axis', axisPointer: { type: 'shadow' }, backgroundColor: palette.card, borderColor: palette.line, textStyle: { color: palette.ink }, valueFormatter: format },
      grid: { left: 4, right: 18, top: 6, bottom: 4, containLabel: true },
      xAxis: axis(palette, { type: 'value', splitNumber: 3, axisLabel: { formatter: format, hideOverlap: true } }),
      yAxis: axis(palette, { type: 'category', inverse: true, data: shown.map((l) => l.id), splitLine: { show: false }, axisLabel: { width: 170, overflow: 'truncate' } }),
      series: [{ type: 'bar', barMaxWidth: 14, itemStyle: { color: colour, borderRadius: 3 }, data: shown.map(value) }],
    };
    return <div key={id}><h3>{title}</h3><Chart id={id} label={title} height={46 + 24 * shown.length} palette={palette} option={option} /></div>;
  };
  if (links.length === 0) return null;
  return (
    <Section id="queues" title="Queues, pauses, marks" note="Of the links in this report; the twelve that lead in each.">
      <div class="grid2">
        {bar('queues-chart', 'Deepest queue in front of the link', palette.series[0]!, (l) => l.peak_queue_bytes ?? 0, bytes)}
        {bar('marks-chart', 'ECN marks', palette.series[4]!, (l) => l.ecn_marks ?? 0, count)}
        {bar('pauses-chart', 'Time paused by PFC', palette.series[1]!, (l) => l.pfc_pause_s ?? 0, seconds)}
        {bar('drops-chart', 'Packets dropped', palette.series[3]!, (l) => l.drops ?? 0, count)}
      </div>
    </Section>
  );
}

export function Flows({ run, palette }: Part) {
  const flows = run.flows;
  const option = useMemo(() => ({
    tooltip: { trigger: 'axis', axisPointer: { type: 'shadow' }, backgroundColor: palette.card, borderColor: palette.line, textStyle: { color: palette.ink }, valueFormatter: gbs },
    xAxis: axis(palette, { type: 'category', data: flows.map((f) => f.id), axisLabel: { hideOverlap: true }, splitLine: { show: false } }),
    yAxis: axis(palette, { type: 'value', name: 'GB/s' }),
    series: [{ type: 'bar', barMaxWidth: 30, itemStyle: { color: palette.series[0], borderRadius: 3 }, data: flows.map((f) => f.rate_gbs) }],
  }), [flows, palette]);
  if (flows.length === 0) return null;
  const cut = run.left_out?.flows ?? 0;
  return (
    <Section id="flows" title="Flows" note={cut > 0 ? `The first ${flows.length}; ${count(cut)} more (weft run --top shows them).` : undefined}>
      {flows.length > 1 && <Chart id="flows-chart" label="rate of each flow" height={260} palette={palette} option={option} />}
      <div class="scroll tall">
        <table>
          <thead><tr><th>flow</th><th>from</th><th>to</th><th class="n">bytes</th><th class="n">start</th><th class="n">finish</th><th class="n">rate</th><th class="n">sent again</th></tr></thead>
          <tbody>
            {flows.map((f, i) => (
              <tr key={i}><td>{f.id}</td><td>{f.src}</td><td>{f.dst}</td>
                <td class="n"><Figure run={run} path={`/flows/${i}/bytes`} format={bytes} /></td>
                <td class="n"><Figure run={run} path={`/flows/${i}/start_s`} format={seconds} /></td>
                <td class="n"><Figure run={run} path={`/flows/${i}/finish_s`} format={seconds} /></td>
                <td class="n"><Figure run={run} path={`/flows/${i}/rate_gbs`} format={gbs} /></td>
                <td class="n"><Figure run={run} path={`/flows/${i}/retransmitted_bytes`} format={bytes} /></td></tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

export function Evidence({ run, palette }: Part) {
  const kinds = ['measured', 'datasheet', 'assumed'] as const;
  const colours = [palette.series[2]!, palette.series[0]!, palette.series[4]!];
  const total = kinds.reduce((n, k) => n + run.evidence[k], 0) || 1;
  return (
    <Section id="evidence" title="Evidence" note="Where the values that went in come from.">
      <div class="stack" role="img" aria-label={kinds.map((k) => `${run.evidence[k]} ${k}`).join(', ')}>
        {kinds.map((k, i) => run.evidence[k] > 0 && (<span key={k} style={{ flexGrow: run.evidence[k], background: colours[i] }} />))}
      </div>
      <p class="keys">
        {kinds.map((k, i) => (<span key={k}><i style={{ background: colours[i] }} /><Figure run={run} path={`/evidence/${k}`} format={count} />&nbsp;{k === 'datasheet' ? 'from datasheets' : k} ({percent(run.evidence[k] / total)})</span>))}
      </p>
      {run.settings && run.settings.length > 0 && (
        <>
          <h3>Parameters of the packet level, as used</h3>
          <div class="scroll"><table><thead><tr><th>parameter</th><th>value</th><th>from</th></tr></thead><tbody>{run.settings.map((s, i) => (<tr key={i}><td>{s.name}</td><td>{s.value}</td><td>{s.source}</td></tr>))}</tbody></table></div>
        </>
      )}
      <p class="hint">weft {run.weft.version}, seed {run.seed}, fingerprint <code>{run.fingerprint}</code>, computed in {seconds(run.wall_s)} with {bytes(run.peak_rss_bytes)} of memory.</p>
    </Section>
  );
}
