import { expect, it } from '@jest/globals';
import { handledMessages, testApp } from '#testing';
import { GatewayModule } from './gateway.module.js';

it('constructs every provider of the gateway, which handles facts but no commands or queries', async () => {
  const app = await testApp(GatewayModule).compile();
  const handled = handledMessages(app);
  expect(handled.filter((name) => name.startsWith('gateway.'))).toEqual([]);
  expect(handled.map((name) => name.split(' ')[0])).toEqual(expect.arrayContaining(['usage', 'error-mail']));
  await app.close();
});
