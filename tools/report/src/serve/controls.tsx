// SPDX-License-Identifier: Apache-2.0
// The sliders and choices, each with the rule that its value breaks.
import type { ComponentChildren } from 'preact';
import { count } from '../format';
import type { Problem } from './ask';
import { stepsOf, type Choices, type NumberKey, type Question } from './question';

interface Given {
  question: Question;
  problems: Problem[];
  notes: Problem[];
  change: (key: keyof Question, value: number | string) => void;
}

function Told({ id, given }: { id: string; given: Given }) {
  const mine = (p: Problem) => p.control === id;
  const broken = given.problems.filter(mine), notes = given.notes.filter(mine);
  return (
    <>
      {broken.length > 0 && <p class="broken" id={`broken-${id}`} role="alert">{broken.map((p) => (<span key={p.fact}>{p.fact}{p.cure && <small>{p.cure}</small>}</span>))}</p>}
      {notes.map((p) => (<p class="hint" id={`note-${id}`} key={p.fact}>{p.fact}</p>))}
    </>
  );
}

function Slider({ id, name, value, most, show, given, off }: { id: NumberKey; name: string; value: number; most: number; show?: ((v: number) => string) | undefined; given: Given; off?: string | undefined }) {
  const steps = stepsOf(id, value, most);
  const text = (show ?? count)(value);
  return (
    <div class="slider">
      <label for={id}>{name}</label><output for={id}>{off ?? text}</output>
      <input type="range" id={id} min={0} max={steps.length - 1} step={1} value={steps.indexOf(value)} disabled={off !== undefined} aria-valuetext={text}
        aria-invalid={given.problems.some((p) => p.control === id)} onInput={(e) => given.change(id, steps[Number(e.currentTarget.value)]!)} />
      <Told id={id} given={given} />
    </div>
  );
}

function Pick({ id, name, options, given, note }: { id: 'fabric' | 'model' | 'fidelity' | 'recompute'; name: string; options: string[]; given: Given; note?: string | undefined }) {
  return (
    <div class="slider">
      <label for={id}>{name}</label>
      <select id={id} value={given.question[id]} onChange={(e) => given.change(id, e.currentTarget.value)}>{options.map((o) => (<option key={o} value={o}>{o}</option>))}</select>
      {note && <p class="hint">{note}</p>}
      <Told id={id} given={given} />
    </div>
  );
}

export function Controls({ choices, tied, setTied, children, ...given }: Given & { choices: Choices; tied: boolean; setTied: (t: boolean) => void; children?: ComponentChildren }) {
  const { question } = given;
  const fabric = choices.fabrics.find((f) => f.name === question.fabric), model = choices.models.find((m) => m.name === question.model);
  const most = choices.most_gpus;
  const slider = (id: NumberKey, name: string, show?: (v: number) => string) => <Slider id={id} name={name} value={question[id]!} most={most} show={show} given={given} />;
  return (
    <section class="controls" id="question" aria-labelledby="question-title" tabIndex={-1}>
      <h2 id="question-title">What if</h2>
      <Pick id="fabric" name="Fabric" options={choices.fabrics.map((f) => f.name)} given={given} note={fabric?.summary} />
      {slider('gpus', 'GPUs', (v) => `${count(v)} on ${count(Math.ceil(v / (fabric?.gpus_per_server ?? 8)))} servers`)}
      {slider('bandwidth', 'Network port', (v) => `${count(v * (fabric?.port_gbps ?? 0))} Gb/s${v === 1 ? '' : `, ${count(v)} ×`}`)}
      <Slider id="oversubscription" name="Oversubscription" value={question.oversubscription ?? fabric?.oversubscription ?? 1} most={most} show={(v) => `${count(v)} : 1`} given={given} off={fabric?.oversubscribes ? undefined : 'no leaves with uplinks'} />
      <Pick id="model" name="Model" options={choices.models.map((m) => m.name)} given={given} note={model && `${count(Number((model.parameters / 1e9).toPrecision(3)))} billion parameters. ${model.summary}`} />
      {slider('tp', 'Tensor parallel')}
      {slider('pp', 'Pipeline stages')}
      {slider('dp', 'Data parallel')}
      <label class="tied"><input type="checkbox" id="tied" checked={tied} onChange={(e) => setTied(e.currentTarget.checked)} /> keep GPUs = TP × PP × DP</label>
      {model?.experts && slider('ep', 'Expert parallel')}
      {slider('micro_batch', 'Micro-batch', (v) => `${v} sequence${v === 1 ? '' : 's'}`)}
      {slider('global_batch', 'Sequences per step')}
      {slider('seq', 'Sequence', (v) => `${count(v)} tokens`)}
      {slider('vpp', 'Chunks per stage')}
      {slider('zero', 'ZeRO stage')}
      <Pick id="recompute" name="Recompute" options={choices.recomputes} given={given} />
      <Pick id="fidelity" name="Level" options={choices.levels} given={given} />
      {children}
    </section>
  );
}
