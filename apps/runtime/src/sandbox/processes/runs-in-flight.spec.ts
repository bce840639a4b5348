import { expect, it } from '@jest/globals';
import { defaultLimits } from '../sandbox-config.js';
import { jobOf } from '../sandbox-for-tests.js';
import { ProtocolBroken } from '../wire/guest-message.js';
import type { OutputItem } from '../wire/messages.js';
import { RunInFlight } from './runs-in-flight.js';

const COST = { bytes: 20, tokens: 5, pieces: 1, ms: 0.1 };

it('the pieces of all frames of a run are limited together, and their time is that of the run', async () => {
  const run = new RunInFlight('1', jobOf(''), { ...defaultLimits, outputPieces: 300 }, true);
  for (let n = 0; n < 3; n++) run.count({ ...COST, pieces: 100 });
  expect(() => run.count(COST)).toThrow('output in more than 300 pieces');
  run.end('killed', null, 0);
  expect((await run.settled).mainMs).toBeCloseTo(0.4);
});

it.each([
  ['a change of the db', ['db', 'k', '1']],
  ['a log line', ['log', 'info', 0, 'x', null]],
] as [string, OutputItem][])('%s is refused from options(), whose result it is not', (_, item) => {
  const run = new RunInFlight('1', jobOf('', { method: 'options' }), defaultLimits, true);
  run.add([['emit', '1', {}]]);
  expect(() => run.add([item])).toThrow(ProtocolBroken);
});
