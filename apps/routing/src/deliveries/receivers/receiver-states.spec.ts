import { describe, expect, it, jest } from '@jest/globals';
import type { UserId, WebhookId } from '#contracts';
import type { Delivery, Outcome } from '../delivery.js';
import { ReceiverStates, type Waiting } from './receiver-states.js';

const newWaiting = (): Waiting => ({ delivery: {} as never, since: 0, isOwn: () => true, ended: false });

interface Receivers {
  owner: string;
  count: number;
  /** Of each. */
  waiting: number;
  durationMs: number;
}

function statesOf(all: Receivers[]): ReceiverStates {
  const states = new ReceiverStates();
  for (const { owner, count, waiting, durationMs } of all) {
    for (let n = 0; n < count; n++) {
      const state = states.see(`wh_${owner}${n}` as WebhookId, owner as UserId);
      state.duration = durationMs;
      for (let each = 0; each < waiting; each++) state.waiting.add(newWaiting());
    }
  }
  return states;
}

const many = { owner: 'many', count: 100, waiting: 6, durationMs: 900 };
const other = { owner: 'other', count: 2, waiting: 10, durationMs: 5 };

describe('an account that has most of the waiting deliveries', () => {
  it.each<[string, Receivers[], string[]]>([
    ['is found, with those of its receivers that have some', [many, other, { ...many, count: 1, owner: 'third' }], ['many']],
    ['is found if it is alone', [many], ['many']],
    ['is found if its receivers are fast, but many, and others may have to wait for it', [{ ...many, durationMs: 5 }, other], ['many']],
    ['is not found if it is fast and alone', [{ ...many, durationMs: 100 }], []],
    ['is not one with half of them', [many, { ...many, owner: 'equal' }], []],
  ])('%s', (_, receivers, expected) => {
    const greedy = statesOf(receivers).ofGreedyAccount();
    expect([...new Set(greedy.map(({ ownerId }) => ownerId))]).toEqual(expected);
    expect(greedy.length).toBe(expected.length === 0 ? 0 : 100);
  });

  it('counts receivers that have not been tried yet as slow as its others', () => {
    const states = statesOf([many, { ...many, count: 0 }]);
    const untried = states.see('wh_new', 'many' as UserId);
    untried.waiting.add(newWaiting());
    expect(states.ofGreedyAccount()).toContain(untried);
  });

  it('has no receivers while nothing waits', () => {
    expect(statesOf([{ ...many, waiting: 0 }]).ofGreedyAccount()).toEqual([]);
  });
});

it('a receiver is forgotten an hour after its last failure if it had no success since', () => {
  jest.useFakeTimers({ now: 0 });
  try {
    const states = new ReceiverStates();
    states.of('wh_1').begins('http://a/');
    const fail = (again: boolean) =>
      states.of('wh_1').count('http://a/', { place: { ms: 1, seq: 1 } } as Delivery, { verdict: 'failed', attempt: {} } as Outcome, again);
    const isKnown = () => {
      states.deleteIdle();
      return [...states].length === 1;
    };
    fail(false);
    jest.advanceTimersByTime(3_000_000);
    fail(true);
    jest.advanceTimersByTime(3_000_000);
    expect(isKnown()).toBe(true);
    jest.advanceTimersByTime(600_001);
    expect(isKnown()).toBe(false);
  } finally {
    jest.useRealTimers();
  }
});

it('the outcomes of a receiver do not count at the one that its webhook has next', () => {
  const state = new ReceiverStates().of('wh_1');
  const end = (url: string, seq: number, verdict: Outcome['verdict'] = 'failed') =>
    state.count(url, { place: { ms: 1, seq } } as Delivery, { verdict, attempt: {} } as Outcome, false);
  const fail = (url: string, seq: number) => {
    state.begins(url);
    return end(url, seq);
  };
  expect([1, 2, 3, 4].map((seq) => fail('http://former/', seq))).toEqual(Array(4).fill(false));
  expect([5, 6, 7, 8].map((seq) => fail('http://new/', seq))).toEqual(Array(4).fill(false));
  // attempts that were in progress when the URL changed
  expect([end('http://former/', 9), end('http://former/', 10, 'delivered')]).toEqual([false, false]);
  expect(fail('http://new/', 11)).toBe(true);
});

it('another account is active for half a minute after its last delivery', () => {
  jest.useFakeTimers({ now: 0 });
  try {
    const states = new ReceiverStates();
    const hasOthers = () => (['u_1', 'u_2'] as const).map((account) => states.hasOthersThan(account));
    expect(hasOthers()).toEqual([false, false]);
    states.see('wh_1', 'u_1');
    expect(hasOthers()).toEqual([false, true]);
    jest.advanceTimersByTime(20_000);
    states.see('wh_2', 'u_2');
    expect(hasOthers()).toEqual([true, true]);
    jest.advanceTimersByTime(10_001);
    expect(hasOthers()).toEqual([true, false]);
    jest.advanceTimersByTime(20_000);
    expect(hasOthers()).toEqual([false, false]);
    states.see('wh_1', 'u_1');
    expect(hasOthers()).toEqual([false, true]);
  } finally {
    jest.useRealTimers();
  }
});
