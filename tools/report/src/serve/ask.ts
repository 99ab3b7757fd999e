// SPDX-License-Identifier: Apache-2.0
// Asks weft: first for the quick answer, and when the sliders rest for the whole one. Of questions that come while one is under way
// only the last is asked.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Run } from '../report';
import type { Question } from './question';

export interface Problem {
  control: string;
  fact: string;
  cure: string;
}
export interface Estimate {
  operations: number;
  seconds: number;
  limit_s: number;
}
export interface Good {
  question: Question;
  scenario: unknown;
  report: Run;
  notes: Problem[]; // what weft built otherwise than it was asked
  took_s: number;
}
export interface State {
  good?: Good; // the last answer
  problems: Problem[]; // of the present question
  estimate?: Estimate;
  busy: boolean;
  whole: boolean; // with what limits it
  late: string; // why it is not, when that takes too long
}

const kRestMs = 350;

export function useAnswer(question: Question): State {
  const [state, setState] = useState<State>({ problems: [], busy: true, whole: false, late: '' });
  const wanted = useRef<{ question: Question; quick: boolean } | null>(null);
  const under = useRef(false);

  const next = async () => {
    if (under.current) return;
    under.current = true;
    while (wanted.current) {
      const asked = wanted.current;
      wanted.current = null;
      setState((s) => ({ ...s, busy: true }));
      const result = await ask(asked.question, asked.quick);
      // The quick answer stands when only the whole one takes too long.
      const tooLong = !asked.quick && result.problems.length > 0 && result.estimate !== undefined;
      setState((s) => {
        const late = tooLong && s.good?.question === asked.question;
        const shown = late ? { problems: [], late: result.problems[0]!.fact } : { ...result, late: '' };
        return { ...s, ...shown, busy: wanted.current !== null, whole: !asked.quick && result.problems.length === 0 };
      });
    }
    under.current = false;
  };
  useEffect(() => {
    wanted.current = { question, quick: true };
    void next();
    const later = setTimeout(() => {
      wanted.current = { question, quick: false };
      void next();
    }, kRestMs);
    return () => clearTimeout(later);
  }, [question]);
  return state;
}

const told = (fact: string): { problems: Problem[] } => ({ problems: [{ control: '', fact, cure: '' }] });

async function ask(question: Question, quick: boolean): Promise<Pick<State, 'problems'> & Partial<State>> {
  const start = performance.now();
  try {
    const token = new URLSearchParams(location.search).get('token') ?? '';
    const response = await fetch('/api/run', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Weft-Token': token },
      body: JSON.stringify({ ...question, quick }),
    });
    const text = await response.text();
    if (response.status !== 200 && response.status !== 422) return told(text.trim() || `weft serve answered ${response.status}`);
    const json = JSON.parse(text) as { scenario?: unknown; report?: Run; estimate?: Estimate; problems?: Problem[]; notes?: Problem[] };
    const estimate = json.estimate ? { estimate: json.estimate } : {};
    if (!json.report) return { problems: json.problems ?? [], ...estimate };
    return { problems: [], good: { question, scenario: json.scenario, report: json.report, notes: json.notes ?? [], took_s: (performance.now() - start) / 1000 }, ...estimate };
  } catch {
    return told('weft serve does not answer: it has ended, or the machine is asleep');
  }
}
