// SPDX-License-Identifier: Apache-2.0
// The scenario that was answered, to take along: as text, as a file, as an address for as long as this server runs.
import { useState } from 'preact/hooks';
import { Section } from '../sections';

export function Share({ scenario }: { scenario: unknown }) {
  const [done, setDone] = useState('');
  const text = `${JSON.stringify(scenario, null, 2)}\n`;
  const copy = (what: string, name: string) => {
    navigator.clipboard.writeText(what).then(() => setDone(`${name} copied`), () => setDone('the browser does not let this page copy; the text is below'));
  };
  const save = () => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
    link.download = 'what-if.json';
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    setDone('saved as what-if.json');
  };
  return (
    <Section id="share" title="Share it" note="The scenario as weft ran it. weft run what-if.json gives the same numbers, on any machine.">
      <p class="toolbar buttons">
        <button type="button" id="save" onClick={save}>Save what-if.json</button>
        <button type="button" id="copy-scenario" onClick={() => copy(text, 'scenario')}>Copy the scenario</button>
        <button type="button" id="copy-link" onClick={() => copy(location.href, 'address')}>Copy the address</button>
        <span class="readout" role="status">{done}</span>
      </p>
      <details><summary>the scenario</summary><pre id="scenario">{text}</pre></details>
    </Section>
  );
}
