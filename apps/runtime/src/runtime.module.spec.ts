import { expect, it } from '@jest/globals';
import { handledMessages, ownedRequests, testApp } from '#testing';
import { RuntimeModule } from './runtime.module.js';
import { SANDBOX } from './sandbox/sandbox.provider.js';

it('constructs every provider of the runtime, which answers each of its commands and queries once', async () => {
  const app = await testApp(RuntimeModule)
    .overrideProvider(SANDBOX)
    .useValue({ close: async () => {} })
    .compile();
  expect(
    handledMessages(app)
      .filter((name) => name.startsWith('runtime.'))
      .sort(),
  ).toEqual(ownedRequests('runtime').sort());
  await app.close();
});
