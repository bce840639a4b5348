import { expect, it } from '@jest/globals';
import { eventPlace } from '#events';
import { lateEvents } from './append.service.js';

const MINUTE_MS = 60_000;
const NOW = 1_700_000_000_000;
const FUTURE = Date.UTC(2100);

it.each([
  ['nothing, when the clock continues', { offset: 7, clock: NOW }, { offset: 7, clock: NOW }, undefined],
  ['nothing, when another log begins later', { offset: 7, clock: NOW - 1 }, { offset: 0, clock: NOW }, undefined],
  ['the events of the same time, when another log begins', { offset: 7, clock: NOW }, { offset: 0, clock: NOW }, { from: NOW, to: NOW }],
  [
    'the events of the last minute, when another log begins a minute earlier',
    { offset: 7, clock: NOW },
    { offset: 0, clock: NOW - MINUTE_MS },
    { from: NOW - MINUTE_MS, to: NOW - MINUTE_MS },
  ],
  [
    'nothing, when a log was restored that begins with what is stored',
    { offset: 7, clock: NOW },
    { offset: 0, clock: NOW - 60 * MINUTE_MS },
    undefined,
  ],
  [
    'the events behind the next one, when the clock was wrong',
    { offset: 7, clock: FUTURE },
    { offset: 7, clock: NOW },
    { from: NOW, to: NOW },
  ],
  [
    'the events behind the next one, when the clock has become plausible since the next one was read',
    { offset: 7, clock: NOW + 5 * MINUTE_MS },
    { offset: 7, clock: NOW - 1 },
    { from: NOW - 1, to: NOW - 1 },
  ],
  [
    'the events behind the next one, when another log begins after the clock was wrong',
    { offset: 7, clock: FUTURE },
    { offset: 0, clock: NOW },
    { from: NOW, to: NOW },
  ],
  [
    'the events of the future, when a log was restored after the clock was wrong',
    { offset: 7, clock: FUTURE },
    { offset: 0, clock: NOW - 60 * MINUTE_MS },
    { from: NOW + 5 * MINUTE_MS, to: NOW - 60 * MINUTE_MS },
  ],
])('selects the events that have to move back: %s', (_, before, first, expected) =>
  expect(lateEvents(before, eventPlace({ ...first, partition: 3 }), NOW)).toEqual(expected),
);
