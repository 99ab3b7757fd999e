// SPDX-License-Identifier: Apache-2.0
// A figure of a report: what is shown, and where in the JSON it comes from, so that a test can hold one against the other.
import { at } from './report';
import type { Run } from './report';

export function Figure({ run, path, format }: { run: Run; path: string; format: (value: number) => string }) {
  const value = at(run, path);
  if (typeof value !== 'number') return <span class="figure">–</span>;
  return (
    <data class="figure" value={String(value)} data-path={path} data-fingerprint={run.fingerprint} title={`${path} = ${value}`}>
      {format(value)}
    </data>
  );
}
