// SPDX-License-Identifier: Apache-2.0
// A chart of ECharts in the page's colours, drawn as SVG so that print and zoom stay sharp.
import { useEffect, useRef } from 'preact/hooks';
import { BarChart, LineChart, ScatterChart } from 'echarts/charts';
import { AriaComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent, DataZoomComponent } from 'echarts/components';
import * as echarts from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';
import type { Palette } from './palette';

echarts.use([BarChart, LineChart, ScatterChart, AriaComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent, DataZoomComponent, SVGRenderer]);

export type Option = Record<string, unknown>;

export function Chart({ id, label, height, palette, option }: { id: string; label: string; height: number; palette: Palette; option: Option }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const chart = echarts.init(box.current!, null, { renderer: 'svg' });
    chart.setOption({ ...base(palette), ...option });
    const resized = new ResizeObserver(() => chart.resize({ animation: { duration: 0 } }));
    resized.observe(box.current!);
    return () => {
      resized.disconnect();
      chart.dispose();
    };
  }, [palette, option]);
  return <div ref={box} id={id} class="chart" role="img" aria-label={label} style={{ height: `${height}px` }} />;
}

// Spelt out: texts are measured before they stand in the page.
const kFont = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif';

function base(palette: Palette): Option {
  return {
    animation: false,
    aria: { enabled: true, decal: { show: false } },
    color: palette.series,
    textStyle: { fontFamily: kFont, color: palette.muted },
    tooltip: { trigger: 'item', backgroundColor: palette.card, borderColor: palette.line, textStyle: { color: palette.ink, fontSize: 12 }, confine: true },
    grid: { left: 8, right: 24, top: 30, bottom: 8, containLabel: true },
  };
}

// Axes in the page's colours.
export function axis(palette: Palette, more: Option): Option {
  return {
    axisLine: { lineStyle: { color: palette.line } },
    axisTick: { lineStyle: { color: palette.line } },
    axisLabel: { color: palette.muted, fontSize: 11.5, ...((more['axisLabel'] as object | undefined) ?? {}) },
    splitLine: { lineStyle: { color: palette.line, type: 'dashed' } },
    nameTextStyle: { color: palette.muted, fontSize: 11.5 },
    ...Object.fromEntries(Object.entries(more).filter(([k]) => k !== 'axisLabel')),
  };
}

export const legend = (palette: Palette, more: Option = {}): Option => ({
  type: 'plain', top: 0, left: 0, itemWidth: 14, itemHeight: 9, itemGap: 18, icon: 'roundRect', textStyle: { color: palette.muted, fontSize: 12 }, ...more,
});
