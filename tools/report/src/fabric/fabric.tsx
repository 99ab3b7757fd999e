// SPDX-License-Identifier: Apache-2.0
// The fabric with its load: the network first, a server when one is picked; what is clicked on is told in full beside it.
import { useMemo, useState } from 'preact/hooks';
import { Drawing } from '../canvas';
import { percent, seconds, gbs } from '../format';
import { heat, type Palette } from '../palette';
import { at as valueAt, type FabricView, type Run } from '../report';
import { networkLayout } from './network_layout';
import { serverLayout } from './server_layout';
import { drawNetwork, pickInNetwork, type Pick } from './draw_network';
import { drawServer, pickInServer } from './draw_server';

const kBreadth = 720, kLeast = 230, kMost = 540; // of the drawing, in pixels

function torusDims(run: Run): number[] | undefined {
  const dims = valueAt(run.effective, '/fabric/network/dims');
  return Array.isArray(dims) && dims.every((d) => typeof d === 'number') ? dims : undefined;
}

export function Fabric({ run, view, palette }: { run: Run; view: FabricView; palette: Palette }) {
  const servers = view.servers.type.length;
  const alone = view.switches.name.length === 0;
  const [server, setServer] = useState<number | null>(alone ? 0 : null);
  const [picked, setPicked] = useState<Pick | null>(null);
  const [hovered, setHovered] = useState<Pick | null>(null);
  const network = useMemo(() => (alone ? null : networkLayout(view, torusDims(run))), [view]);
  const type = view.types[view.servers.type[server ?? 0] ?? 0]!;
  const inside = useMemo(() => serverLayout(type), [type]);
  const detail = view.servers.details.find((d) => d.server === server);
  const size = server === null ? network! : inside;
  const open = (s: number | null) => {
    setServer(s);
    setPicked(null);
    setHovered(null);
  };
  const nameOf = (end: number) => (end < servers ? `server${end}` : view.switches.name[end - servers]!);
  const pick = (x: number, y: number, c: { x: number; y: number; sx: number; sy: number }): Pick | null =>
    server === null ? pickInNetwork(view, network!, x, y, c) : pickInServer(type, inside, x, y, c);
  const same = (a: Pick | null, b: Pick | null) => a?.kind === b?.kind && a?.index === b?.index;

  return (
    <div class="split">
      <div>
        <div class="toolbar">
          <nav class="crumbs" aria-label="place in the fabric">
            {!alone && (
              <button type="button" class="link" aria-current={server === null} onClick={() => open(null)}>network</button>
            )}
            {server !== null && <span>{alone ? '' : ' / '}{alone ? type.name : `server${server} (${type.name})`}</span>}
          </nav>
          <Finder view={view} onPick={(p) => (p.kind === 'server' ? open(p.index) : (open(null), setPicked(p)))} />
          <Legend palette={palette} />
        </div>
        <Drawing
          id="fabric-canvas"
          height={Math.round(Math.max(kLeast, Math.min(kMost, (kBreadth * size.height) / size.width + 24)))}
          label={`${run.fabric}: ${servers} servers with ${view.gpus} GPUs, ${view.switches.name.length} network switches, coloured by load`}
          fit={(w, h) => {
            const s = Math.min((w - 24) / size.width, (h - 24) / size.height, 90);
            return { sx: s, sy: s, x: size.width / 2 - w / 2 / s, y: size.height / 2 - h / 2 / s };
          }}
          draw={(g, c, w, h) =>
            server === null
              ? drawNetwork(g, c, w, h, view, network!, palette, picked, hovered)
              : drawServer(g, c, view, type, inside, detail, palette, picked, hovered)
          }
          onHover={(x, y, c) => {
            const found = pick(x, y, c);
            if (!same(found, hovered)) setHovered(found);
            return found !== null;
          }}
          onLeave={() => setHovered(null)}
          onClick={(x, y, c) => {
            const found = pick(x, y, c);
            if (found?.kind === 'server') open(found.index);
            else setPicked(found);
          }}
          redraw={[palette, picked, hovered, server]}
          refit={[server, view]}
        />
        <p class="hint">Drag to move; + and − or the wheel (once clicked) zoom, 0 shows all. Colour is the share of a link's payload rate used over the whole run.{view.cables.left_out > 0 ? ` The ${view.cables.left_out} idlest cables are not drawn.` : ''}</p>
      </div>
      <aside class="details" aria-live="polite" id="fabric-details">
        <Details view={view} server={server} pick={picked ?? hovered} nameOf={nameOf} onServer={open} />
      </aside>
    </div>
  );
}

function Legend({ palette }: { palette: Palette }) {
  const stops = Array.from({ length: 11 }, (_, i) => heat(palette, i / 10));
  return (
    <span class="legend" aria-label="load from idle to full">
      <span>idle</span>
      <span class="bar" style={{ background: `linear-gradient(90deg, ${stops.join(',')})` }} />
      <span>full</span>
    </span>
  );
}

function Finder({ view, onPick }: { view: FabricView; onPick: (pick: Pick) => void }) {
  const servers = view.servers.type.length;
  if (view.switches.name.length === 0) return null;
  const go = (text: string) => {
    const asServer = /^server(\d+)$/.exec(text);
    if (asServer && Number(asServer[1]) < servers) return onPick({ kind: 'server', index: Number(asServer[1]) });
    const s = view.switches.name.indexOf(text);
    if (s >= 0) onPick({ kind: 'switch', index: s });
  };
  return (
    <label class="finder">
      <span class="hidden">find a server or switch</span>
      <input type="search" placeholder="find server3, leaf0 …" onChange={(e) => go(e.currentTarget.value.trim())} />
    </label>
  );
}

function Rows({ rows }: { rows: [string, string][] }) {
  return (
    <dl>
      {rows.map(([k, v]) => (
        <div key={k}><dt>{k}</dt><dd>{v}</dd></div>
      ))}
    </dl>
  );
}

function Details({ view, server, pick, nameOf, onServer }: {
  view: FabricView; server: number | null; pick: Pick | null; nameOf: (end: number) => string; onServer: (s: number) => void;
}) {
  const servers = view.servers.type.length;
  const kindRows = (k: number, count: number): [string, string][] => {
    const kind = view.kinds[k]!;
    return [
      ['class', kind.class], ['tier', kind.tier], ['parallel links', String(count)], ['each', gbs(kind.rate_gbs)],
      ...(count > 1 ? ([['together', gbs(kind.rate_gbs * count)]] as [string, string][]) : []), ['delay', seconds(kind.delay_s)],
    ];
  };
  if (pick?.kind === 'cable' && server === null) {
    const c = view.cables, i = pick.index, a = nameOf(c.a[i]!), b = nameOf(c.b[i]!);
    return (<><h4>{a} — {b}</h4><Rows rows={[...kindRows(c.kind[i]!, c.count[i]!), [`load ${a} → ${b}`, percent(c.up[i]!)], [`load ${b} → ${a}`, percent(c.down[i]!)]]} /></>);
  }
  if (pick?.kind === 'server' && server === null) {
    const type = view.types[view.servers.type[pick.index]!]!;
    return (<><h4>server{pick.index}</h4><Rows rows={[['kind', type.name], ['busiest link', percent(view.servers.load[pick.index]!)]]} /><p class="hint">Click to look inside.</p></>);
  }
  if (pick?.kind === 'switch') {
    const end = servers + pick.index;
    const mine = view.cables.a.flatMap((a, i) => (a === end || view.cables.b[i] === end ? [i] : []));
    const load = (i: number) => Math.max(view.cables.up[i]!, view.cables.down[i]!);
    const busiest = [...mine].sort((a, b) => load(b) - load(a)).slice(0, 8);
    return (
      <>
        <h4>{view.switches.name[pick.index]}</h4>
        <Rows rows={[['level', String(view.switches.level[pick.index])], ['neighbours', String(mine.length)], ['busiest link', percent(view.switches.load[pick.index]!)]]} />
        <h5>busiest neighbours</h5>
        <Rows rows={busiest.map((i) => [nameOf(view.cables.a[i] === end ? view.cables.b[i]! : view.cables.a[i]!), percent(load(i))])} />
      </>
    );
  }
  const type = view.types[view.servers.type[server ?? 0] ?? 0]!;
  const detail = view.servers.details.find((d) => d.server === server);
  if (pick?.kind === 'cable') {
    const [a, b, count, kind] = type.cables[pick.index]!;
    const an = type.nodes[a]![0], bn = type.nodes[b]![0];
    const rows = kindRows(kind, count);
    if (detail) rows.push([`load ${an} → ${bn}`, percent(detail.up[pick.index]!)], [`load ${bn} → ${an}`, percent(detail.down[pick.index]!)]);
    return (<><h4>{an} — {bn}</h4><Rows rows={rows} /></>);
  }
  if (pick?.kind === 'node') {
    const [name, kind] = type.nodes[pick.index]!;
    const mine = type.cables.flatMap((c, i) => (c[0] === pick.index || c[1] === pick.index ? [i] : []));
    return (
      <>
        <h4>{name}</h4>
        <Rows rows={[['kind', kind.replace('_', ' ')], ['cables', String(mine.length)]]} />
        {detail && <h5>load out / in</h5>}
        {detail && (
          <Rows rows={mine.slice(0, 16).map((i) => {
            const [a, b] = type.cables[i]!, out = a === pick.index;
            return [type.nodes[out ? b : a]![0], `${percent((out ? detail.up : detail.down)[i]!)} / ${percent((out ? detail.down : detail.up)[i]!)}`];
          })} />
        )}
      </>
    );
  }
  const busy = view.servers.load.map((load, s) => ({ load, s })).sort((a, b) => b.load - a.load || a.s - b.s).slice(0, 6);
  return (
    <>
      <h4>{server === null ? 'Fabric' : type.name}</h4>
      <Rows rows={server === null
        ? [['GPUs', String(view.gpus)], ['servers', String(servers)], ['network switches', String(view.switches.name.length)], ['nodes', String(view.nodes)], ['links (one way)', String(view.links)], ...(view.generator ? ([['generator', view.generator]] as [string, string][]) : [])]
        : [['GPUs', String(type.nodes.filter(([, k]) => k === 'gpu').length)], ['nodes', String(type.nodes.length)], ['cables', String(type.cables.length)], ...(detail ? [] : ([['load', 'not kept for this server']] as [string, string][]))]} />
      {server === null && <h5>busiest servers</h5>}
      {server === null && <ul class="plain">{busy.map(({ load, s }) => (<li key={s}><button type="button" class="link" onClick={() => onServer(s)}>server{s}</button> {percent(load)}</li>))}</ul>}
      <p class="hint">Point at a part or click on it.</p>
    </>
  );
}
