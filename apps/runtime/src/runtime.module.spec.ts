import { expect, it } from '@jest/globals';
import { handledMessages, idleSchedules, ownedRequests, testApp, topicsReadableBy, topicsReadBy } from '#testing';
import { RuntimeModule } from './runtime.module.js';
import { Sandbox } from './sandbox/sandbox.js';

it('constructs every provider of the runtime, which handles each of its commands and queries once, and reads the topics that it may read, and no schedule is idle', async () => {
  const app = await testApp(RuntimeModule)
    .overrideProvider(Sandbox)
    .useValue({ close: async () => {} })
    .compile();
  expect(
    handledMessages(app)
      .filter((name) => name.startsWith('runtime.'))
      .sort(),
  ).toEqual(ownedRequests('runtime').sort());
  expect(topicsReadBy(app)).toEqual(topicsReadableBy('runtime'));
  expect(idleSchedules(app)).toEqual([]);
  await app.close();
});
