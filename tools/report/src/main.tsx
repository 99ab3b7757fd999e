// SPDX-License-Identifier: Apache-2.0
import { useMemo, useState } from 'preact/hooks';
import { Compare, Curves } from './compare';
import { ConfigTree } from './config_tree';
import { Fabric } from './fabric/fabric';
import { Frame, start, useTheme } from './frame';
import { readDocuments, type Document } from './report';
import { Answer, CriticalPath, Evidence, Flows, Jobs, Limits, Links, Queues, Section } from './sections';
import { OverTime } from './series';
import { Timeline } from './timeline';
import { Training } from './training';

function App({ documents }: { documents: Document[] }) {
  const [palette, theme, setTheme] = useTheme();
  const runs = documents.flatMap((d) => (d.kind === 'run' ? [d] : []));
  const [chosen, setChosen] = useState(0);
  const several = documents.length > 1;
  const run = runs[chosen]?.run;
  const title = several ? `${documents.length} reports compared` : documents[0]?.name ?? 'no report';
  const part = run && { run, palette };
  const fabric = run?.view?.fabric, timeline = run?.view?.timeline;
  const one = useMemo(() => (run ? [runs[chosen]!] : documents), [chosen]);
  return (
    <Frame title={title} first={several ? 'Comparison' : 'The answer'} version={chosen} theme={theme} setTheme={setTheme}>
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
    </Frame>
  );
}

start((data) => <App documents={readDocuments(data)} />);
