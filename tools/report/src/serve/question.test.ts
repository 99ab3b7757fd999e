// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { fromFragment, moved, stepsOf, toFragment, type Question } from './question';

const start: Question = { fabric: 'a', model: 'm', fidelity: 'fluid', gpus: 64, tp: 8, pp: 4, dp: 2, ep: 1, vpp: 1, micro_batch: 1, global_batch: 128, seq: 4096, zero: 1, recompute: 'selective', bandwidth: 1 };

describe('sliders', () => {
  it('replicas follow GPUs and plan', () => {
    expect(moved(start, 'gpus', 128, true, 16384).dp).toBe(4);
    expect(moved(start, 'tp', 4, true, 16384).dp).toBe(4);
    expect(moved(start, 'dp', 8, true, 16384).gpus).toBe(256);
  });
  it('a product that does not come out is left for weft to refuse', () => {
    expect(moved(start, 'pp', 3, true, 16384)).toMatchObject({ pp: 3, dp: 2, gpus: 64 });
    expect(moved(start, 'dp', 1024, true, 16384)).toMatchObject({ dp: 1024, gpus: 64 });
    expect(moved(start, 'gpus', 128, false, 16384).dp).toBe(2);
  });
  it('another fabric has an oversubscription of its own', () => {
    expect(moved({ ...start, oversubscription: 4 }, 'fabric', 'b', true, 16384).oversubscription).toBeUndefined();
  });
  it('a value between the steps is a step', () => {
    expect(stepsOf('dp', 6, 64)).toEqual([1, 2, 4, 6, 8, 16, 32, 64]);
    expect(stepsOf('dp', 8, 64)).toEqual([1, 2, 4, 8, 16, 32, 64]);
  });
});

describe('addresses', () => {
  it('hold what differs and give it back', () => {
    const q = { ...start, tp: 4, dp: 4, bandwidth: 0.5, oversubscription: 2, fabric: 'b+c' };
    expect(fromFragment(toFragment(q, start), start)).toEqual(q);
    expect(toFragment(start, start)).toBe('');
  });
  it('take no nonsense', () => {
    expect(fromFragment('tp=x&dp=&nonsense=4&pp=1e999&__proto__=1', start)).toEqual(start);
  });
});
