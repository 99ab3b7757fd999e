// SPDX-License-Identifier: Apache-2.0
// What all pages share: the head with the title and the theme, the list of sections, and the way from the data to the page.
import { render, type ComponentChildren, type VNode } from 'preact';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { dark, light, type Palette } from './palette';

export type Theme = 'light' | 'dark';

export function useTheme(): [Palette, Theme, (t: Theme) => void] {
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
  useLayoutEffect(() => {
    document.documentElement.dataset['theme'] = theme;
  }, [theme]);
  return [theme === 'dark' ? dark : light, theme, setTheme];
}

// `first` names the top of the page; `version` changes when other sections are shown.
export function Frame({ title, first, version, theme, setTheme, children }: { title: string; first: string; version: unknown; theme: Theme; setTheme: (t: Theme) => void; children: ComponentChildren }) {
  useEffect(() => {
    document.title = `${title} · weft`;
  }, [title]);
  const [links, setLinks] = useState<{ id: string; title: string }[]>([]);
  useEffect(() => {
    setLinks([...document.querySelectorAll('main section[id] > h2')].map((h) => ({ id: h.parentElement!.id, title: h.textContent ?? '' })));
  }, [version]);
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
          <a href="#main">{first}</a>
          {links.map((l) => (<a key={l.id} href={`#${l.id}`}>{l.title}</a>))}
        </nav>
        <main id="main">{children}</main>
      </div>
    </>
  );
}

// Shows what `page` makes of the data that lies in the document.
export function start(page: (data: unknown) => VNode): void {
  const root = document.getElementById('app')!;
  try {
    const data: unknown = JSON.parse(document.getElementById('weft-data')!.textContent ?? '[]');
    root.textContent = '';
    render(page(data), root);
  } catch (problem) {
    root.textContent = `This page could not be shown: ${problem instanceof Error ? problem.message : String(problem)}`;
    throw problem;
  }
}
