import { expect, it } from '@jest/globals';
import { defaultLimits } from '../sandbox-config.js';
import { jobOf } from '../sandbox-for-tests.js';
import { RunInFlight } from './runs-in-flight.js';

const COST = { bytes: 20, tokens: 5, pieces: 1, ms: 0.1 };

it('the pieces of all frames of a run are limited together, and their time is that of the run', async () => {
  const run = new RunInFlight('1', jobOf(''), { ...defaultLimits, outputPieces: 300 }, true);
  for (let n = 0; n < 3; n++) run.count({ ...COST, pieces: 100 });
  expect(() => run.count(COST)).toThrow('output in more than 300 pieces');
  run.end('killed', null, 0);
  expect((await run.settled).mainMs).toBeCloseTo(0.4);
});
