// SPDX-License-Identifier: Apache-2.0
// The page of `weft serve`: sliders on the left, what they come to on the right.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { axis, Chart } from '../chart';
import { change, percent, seconds } from '../format';
import { Frame, start, useTheme } from '../frame';
import type { Palette } from '../palette';
import { Answer, Limits, Section } from '../sections';
import { Training } from '../training';
import { useAnswer, type Good } from './ask';
import { Controls } from './controls';
import { fromFragment, moved, readChoices, toFragment, type Choices, type Question } from './question';
import { Share } from './share';

const kMostTries = 60;

function differences(a: Question, b: Question): string {
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])] as (keyof Question)[];
  return keys.filter((k) => a[k] !== b[k]).map((k) => `${k.replaceAll('_', ' ')} ${a[k] ?? 'as built'}`).join(', ');
}

// The step times of what was tried, in order.
function Tried({ tries, pinned, palette }: { tries: Good[]; pinned: Good | null; palette: Palette }) {
  const option = useMemo(() => ({
    tooltip: { trigger: 'axis', backgroundColor: palette.card, borderColor: palette.line, textStyle: { color: palette.ink, fontSize: 12 },
      formatter: (points: { dataIndex: number }[]) => {
        const i = points[0]!.dataIndex, one = tries[i]!, what = i > 0 ? differences(one.question, tries[i - 1]!.question) : 'the first';
        return `${what}<br><b>${seconds(one.report.time_s)}</b>`;
      } },
    grid: { left: 8, right: pinned ? 58 : 24, top: 14, bottom: 4, containLabel: true },
    xAxis: axis(palette, { type: 'category', data: tries.map((_, i) => String(i + 1)), splitLine: { show: false } }),
    yAxis: axis(palette, { type: 'value', scale: true, axisLabel: { formatter: seconds } }),
    series: [{ name: 'step', type: 'line', step: 'middle', symbolSize: 7, color: palette.series[0], data: tries.map((t) => t.report.time_s),
      ...(pinned ? { markLine: { silent: true, symbol: 'none', lineStyle: { color: palette.series[1], type: 'dashed' }, label: { formatter: 'pinned', color: palette.muted }, data: [{ yAxis: pinned.report.time_s }] } } : {}) }],
  }), [tries, pinned, palette]);
  return <Chart id="tried-chart" label={`step times of ${tries.length} settings`} height={150} palette={palette} option={option} />;
}

function Pinned({ pinned, now }: { pinned: Good; now: Good }) {
  const rows: [string, number, number, (v: number) => string][] = [['step', pinned.report.time_s, now.report.time_s, seconds]];
  const [a, b] = [pinned.report.jobs[0], now.report.jobs[0]];
  if (a?.mfu !== undefined && b?.mfu !== undefined) rows.push(['MFU', a.mfu, b.mfu, percent]);
  if (a?.tokens_per_s !== undefined && b?.tokens_per_s !== undefined) rows.push(['tokens/s', a.tokens_per_s, b.tokens_per_s, (v) => v.toLocaleString('en-US', { maximumFractionDigits: 0 })]);
  return (
    <table id="against">
      <thead><tr><th></th><th class="n">pinned</th><th class="n">now</th><th class="n">change</th></tr></thead>
      <tbody>{rows.map(([name, before, after, format]) => (<tr key={name}><td>{name}</td><td class="n">{format(before)}</td><td class="n">{format(after)}</td><td class="n">{change(before, after)}</td></tr>))}</tbody>
    </table>
  );
}

function App({ choices }: { choices: Choices }) {
  const [palette, theme, setTheme] = useTheme();
  const [question, setQuestion] = useState(() => fromFragment(location.hash.slice(1), choices.start));
  const [tied, setTied] = useState(true);
  const [pinned, setPinned] = useState<Good | null>(null);
  const [tries, setTries] = useState<Good[]>([]);
  const state = useAnswer(question);
  const { good, problems } = state;
  const last = useRef('');
  useEffect(() => {
    const fragment = toFragment(question, choices.start);
    history.replaceState(null, '', `${location.pathname}${location.search}${fragment ? `#${fragment}` : ''}`);
  }, [question]);
  useEffect(() => {
    const follow = () => setQuestion(fromFragment(location.hash.slice(1), choices.start));
    window.addEventListener('hashchange', follow);
    return () => window.removeEventListener('hashchange', follow);
  }, []);
  useEffect(() => {
    const key = good ? JSON.stringify(good.question) : '';
    if (!good || key === last.current) return;
    last.current = key;
    setTries((t) => [...t, good].slice(-kMostTries));
  }, [good]);
  // The quick answer has not asked yet what limits it.
  const shown = useMemo(() => good && (state.whole ? good.report : { ...good.report, bottlenecks: [] }), [good, state.whole]);
  const notes = problems.length === 0 ? (good?.notes ?? []) : [];
  const elsewhere = problems.filter((p) => p.control === '' || document.getElementById(p.control) === null);
  const status = problems.length > 0 ? 'refused' : state.busy ? 'computing' : good ? `answered in ${seconds(good.took_s)}` : '';
  return (
    <Frame title="What if" first="The answer" version={`${good !== undefined} ${state.whole}`} theme={theme} setTheme={setTheme}>
      <div class="whatif">
        <Controls choices={choices} question={question} problems={problems} notes={notes} tied={tied} setTied={setTied} change={(key, value) => setQuestion((q) => moved(q, key, value, tied, choices.most_gpus))}>
          <p class="buttons"><button type="button" id="reset" onClick={() => setQuestion(choices.start)}>Start again</button></p>
        </Controls>
        <div class="results">
          <p class="readout status" id="status" role="status" data-whole={String(state.whole)} data-busy={String(state.busy)}>{status}</p>
          {elsewhere.map((p) => (<p class="warning" key={p.fact} role="alert">{p.fact}{p.cure && `: ${p.cure}`}</p>))}
          {good && (
            <div class={problems.length > 0 ? 'stale' : ''} title={problems.length > 0 ? 'the last answer, of settings that were legal' : undefined}>
              <Answer run={shown!} palette={palette} />
              <Section id="tried" title="What was tried">
                <Tried tries={tries} pinned={pinned} palette={palette} />
                <p class="buttons"><button type="button" id="pin" onClick={() => setPinned(good)}>Pin this answer</button>{pinned && <button type="button" onClick={() => setQuestion(pinned.question)}>Back to the pinned one</button>}</p>
                {pinned && <Pinned pinned={pinned} now={good} />}
              </Section>
              <Training run={good.report} palette={palette} />
              {state.whole && <Limits run={good.report} palette={palette} />}
              {state.late && <p class="warning" id="late">What limits it is not shown: {state.late}</p>}
              <Share scenario={good.scenario} />
            </div>
          )}
        </div>
      </div>
    </Frame>
  );
}

start((data) => <App choices={readChoices(data)} />);
