// SPDX-License-Identifier: Apache-2.0
import { render } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { Compare, Curves } from './compare';
import { ConfigTree } from './config_tree';
import { Fabric } from './fabric/fabric';
import { dark, light } from './palette';
import { readDocuments, type Document } from './report';
import { Answer, CriticalPath, Evidence, Flows, Jobs, Limits, Links, Queues, Section } from './sections';
import { OverTime } from './series';
import { Timeline } from './timeline';
import { Training } from './training';

type Theme = 'light' | 'dark';

function usePalette(): [Theme, (t: Theme) => void] {
  const query = window.matchMedia('(prefers-color-scheme: dark)');
  const [theme, setTheme] = useState<Theme>(query.matches ? 'dark' : 'light');
  useEffect(() => {
    const follow = () => setTheme(query.matches ? 'dark' : 'light');
    let before: Theme | null = null;
    const toPaper = () => setTheme((t) => ((before = t), 'light'));
    const back = () => before && setTheme(before);
    query.addEventListener('change', follow);
    window.addEventListener('beforeprint', toPaper);
    window.addEventListener('afterprint', back);
    return () => {
      query.removeEventListener('change', follow);
      window.removeEventListener('beforeprint', toPaper);
      window.removeEventListener('afterprint', back);
    };
  }, []);
  useEffect(() => {
    document.documentElement.dataset['theme'] = theme;
  }, [theme]);
  return [theme, setTheme];
}

function App({ documents }: { documents: Document[] }) {
  const [theme, setTheme] = usePalette();
  const palette = theme === 'dark' ? dark : light;
  const runs = documents.flatMap((d) => (d.kind === 'run' ? [d] : []));
  const [chosen, setChosen] = useState(0);
  const several = documents.length > 1;
  const run = runs[chosen]?.run;
  const title = several ? `${documents.length} reports compared` : documents[0]?.name ?? 'no report';
  useEffect(() => {
    document.title = `${title} · weft`;
  }, [title]);
  const [links, setLinks] = useState<{ id: string; title: string }[]>([]);
  useEffect(() => {
    setLinks([...document.querySelectorAll('main section[id] > h2')].map((h) => ({ id: h.parentElement!.id, title: h.textContent ?? '' })));
  }, [chosen]);
  const part = run && { run, palette };
  const fabric = run?.view?.fabric, timeline = run?.view?.timeline;
  const one = useMemo(() => (run ? [runs[chosen]!] : documents), [chosen]);
  return (
    <>
      <a class="skip" href="#main">to the content</a>
      <header>
        <span class="brand" aria-label="weft"><svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><path d="M2 7c4 0 4 10 10 10S18 7 22 7M2 17c4 0 4-10 10-10s6 10 10 10" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" /></svg>weft</span>
        <h1>{title}</h1>
        <button type="button" class="theme" onClick={() => setTheme(theme === 'dark' ? 'light' : 'dark')} aria-label={`change to ${theme === 'dark' ? 'light' : 'dark'}`}>{theme === 'dark' ? '☀' : '☾'}</button>
      </header>
      <div class="page">
        <nav class="contents" aria-label="sections">
          <a href="#main">{several ? 'Comparison' : 'The answer'}</a>
          {links.map((l) => (<a key={l.id} href={`#${l.id}`}>{l.title}</a>))}
        </nav>
        <main id="main">
          {documents.length === 0 && <p class="warning">This page holds no report. Make one with <code>weft run SCENARIO --out DIR</code> or <code>weft report FILE... -o PAGE</code>.</p>}
          {several && <Compare documents={documents} palette={palette} />}
          {several && runs.length > 1 && (
            <p class="chooser"><label>Details of{' '}
              <select id="chooser" value={chosen} onChange={(e) => setChosen(Number(e.currentTarget.value))}>{runs.map((r, i) => (<option key={i} value={i}>{r.name}</option>))}</select></label></p>
          )}
          {part && run && (
            <div key={chosen}>
              <Answer {...part} />
              {fabric && <Section id="fabric" title="Fabric"><Fabric run={run} view={fabric} palette={palette} /></Section>}
              {timeline && timeline.lane.length > 0 && <Section id="timeline" title="Timeline"><Timeline view={timeline} palette={palette} /></Section>}
              <Training {...part} />
              {!several && <Curves documents={one} palette={palette} />}
              <Jobs {...part} />
              <Limits {...part} />
              <CriticalPath {...part} />
              <Queues {...part} />
              <OverTime {...part} />
              <Flows {...part} />
              <Links {...part} />
              <Evidence {...part} />
              <Section id="configuration" title="Configuration" note="The scenario as it ran: every default, every part of the catalogue in its place, and where values come from."><ConfigTree json={run.effective} /></Section>
            </div>
          )}
          {!run && documents.length === 1 && <Curves documents={documents} palette={palette} />}
        </main>
      </div>
    </>
  );
}

const root = document.getElementById('app')!;
try {
  const data: unknown = JSON.parse(document.getElementById('weft-data')!.textContent ?? '[]');
  root.textContent = '';
  render(<App documents={readDocuments(data)} />, root);
} catch (problem) {
  root.textContent = `This page could not be shown: ${problem instanceof Error ? problem.message : String(problem)}`;
  throw problem;
}
