import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { Membership } from './membership.js';

const PAUSE_MS = 10_000;

/** A membership, and whether its tasks are suspended. */
function membership() {
  const state = { suspended: false };
  const tasks = { suspend: () => void (state.suspended = true), resume: () => void (state.suspended = false) };
  const member = new Membership(tasks, PAUSE_MS);
  member.started();
  return { member, state };
}

describe('the membership of a consumer group', () => {
  let now = 0;
  beforeEach(() => {
    now = 0;
    jest.useFakeTimers();
    jest.spyOn(performance, 'now').mockImplementation(() => now);
  });
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  it.each<[string, (member: Membership) => void, boolean]>([
    ['is not in doubt after a short pause', (member) => member.tick(PAUSE_MS), false],
    ['is in doubt after a long pause', (member) => member.tick(PAUSE_MS + 1), true],
    ['is in doubt after a refused commit', (member) => member.unconfirmed(), true],
    ['is in doubt during a rebalance', (member) => member.rebalancing(), true],
    ['is in doubt until it has joined the group again', (member) => member.left(), true],
    [
      'is certain after a commit that began when the process ran again',
      (member) => {
        member.tick(PAUSE_MS + 1);
        member.confirmed(member.newestDoubt);
      },
      false,
    ],
    [
      'stays in doubt after a commit that began before the process stood still',
      (member) => {
        const { newestDoubt } = member;
        member.tick(PAUSE_MS + 1);
        member.confirmed(newestDoubt);
      },
      true,
    ],
    [
      'stays in doubt after a commit during a rebalance',
      (member) => {
        member.rebalancing();
        member.confirmed(member.newestDoubt);
      },
      true,
    ],
    [
      'stays in doubt after a commit if the process is about to join again',
      (member) => {
        member.left();
        member.confirmed(member.newestDoubt);
      },
      true,
    ],
    [
      'is certain after an assignment, whatever was in doubt before',
      (member) => {
        member.rebalancing();
        member.left();
        member.tick(PAUSE_MS + 1);
        member.assigned(member.newestDoubt);
      },
      false,
    ],
    [
      'is not in doubt during a short plan',
      (member) => {
        member.planning();
        member.tick(PAUSE_MS);
      },
      false,
    ],
    [
      'stays in doubt during a long plan, whatever the group accepts and assigns',
      (member) => {
        member.planning();
        member.tick(PAUSE_MS / 2);
        member.tick(PAUSE_MS + 1);
        member.confirmed(member.newestDoubt);
        member.rebalancing();
        member.assigned(member.newestDoubt);
      },
      true,
    ],
    [
      'stays in doubt after a long plan, also after a commit that began during the plan',
      (member) => {
        member.planning();
        member.tick(PAUSE_MS / 2);
        member.tick(PAUSE_MS + 1);
        const { newestDoubt } = member;
        member.planned();
        member.confirmed(newestDoubt);
      },
      true,
    ],
    [
      'is certain after a commit that began after a long plan',
      (member) => {
        member.planning();
        member.tick(PAUSE_MS / 2);
        member.tick(PAUSE_MS + 1);
        member.planned();
        member.confirmed(member.newestDoubt);
      },
      false,
    ],
    [
      'stays in doubt if the next rebalance begins before the assignment is complete',
      (member) => {
        member.rebalancing();
        const { newestDoubt } = member;
        member.rebalancing();
        member.assigned(newestDoubt);
      },
      true,
    ],
  ])('%s', (_, happens, suspended) => {
    const { member, state } = membership();
    happens(member);
    expect(state.suspended).toBe(suspended);
  });

  it('is certain when the consumer has started slowly, although it was looked at before', () => {
    const member = new Membership({ suspend() {}, resume() {} }, PAUSE_MS);
    member.tick();
    now += 60_000;
    member.started();
    expect([member.tick(), member.isCertain]).toEqual([undefined, true]);
    now += PAUSE_MS + 1;
    expect([member.tick(), member.isCertain]).toEqual([PAUSE_MS + 1, false]);
  });

  it('is trusted again when a rebalance takes too long', () => {
    const { member, state } = membership();
    member.rebalancing();
    jest.advanceTimersByTime(19_000);
    expect(state.suspended).toBe(true);
    for (; now <= 20_000; now += 1000) member.tick();
    jest.advanceTimersByTime(1000);
    expect(state.suspended).toBe(false);
  });

  it('stays in doubt if the process stood still during a rebalance, so that the time limit ends first', () => {
    const { member, state } = membership();
    member.rebalancing();
    now += 40_000;
    jest.advanceTimersByTime(20_000);
    expect(state.suspended).toBe(true);
    member.confirmed(member.newestDoubt);
    expect(state.suspended).toBe(false);
  });

  it('is in doubt after a long plan that ends before the next tick', () => {
    const { member, state } = membership();
    member.planning();
    now += PAUSE_MS + 1;
    member.planned();
    expect(state.suspended).toBe(true);
  });

  it('is certain after the end of a plan and the next assignment, whatever has happened', () => {
    const step = fc.constantFrom('tick', 'planning', 'planned', 'rebalancing', 'unconfirmed', 'left', 'confirmed', 'assigned');
    fc.assert(
      fc.property(fc.array(fc.tuple(step, fc.nat(20_000), fc.nat(2))), (steps) => {
        const { member, state } = membership();
        for (const [name, ms, age] of steps) {
          now += ms;
          if (name === 'tick') member.tick();
          else if (name === 'confirmed' || name === 'assigned') member[name](member.newestDoubt - age);
          else member[name]();
        }
        member.planned();
        member.assigned(member.newestDoubt);
        expect(state.suspended).toBe(false);
        member.close();
      }),
    );
  });
});
