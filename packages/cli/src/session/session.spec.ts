import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Session } from './session.js';

const { fetch } = globalThis;
beforeEach(() => void jest.useFakeTimers());
afterEach(() => {
  jest.useRealTimers();
  globalThis.fetch = fetch;
});

it('shows that a server does not respond, until it does', async () => {
  const response = Promise.withResolvers<Response>();
  globalThis.fetch = () => response.promise;
  const session = new Session({});
  const shown: (string | undefined)[] = [];
  jest.spyOn(session, 'progress').mockImplementation((text) => void shown.push(text));

  const user = session.clientOf({ url: 'http://here', key: 'slk_1' }).getCurrentUser();
  await jest.advanceTimersByTimeAsync(4_000);
  expect(shown).toEqual([]);
  await jest.advanceTimersByTimeAsync(2_000);
  expect(shown).toEqual(['waiting for http://here']);
  response.resolve(Response.json({ data: { id: 'u_1' } }));
  await user;
  expect(shown).toEqual(['waiting for http://here', undefined]);
});
