import { describe, expect, it } from '@jest/globals';
import { withoutCredentials } from './printed-request.js';

describe('a request that a component prints', () => {
  const printed = (request: object): string => `export: debug - ${JSON.stringify(request, null, 2)}`;

  it('has a mask in place of its credentials', () => {
    const config = { url: 'http://a', headers: { Authorization: 'Bearer S', 'X-API-Key': 'S', Accept: 'json' }, auth: { username: 'S' } };
    const headers = { 'set-cookie': ['S=1'], date: 'now' };
    const shown = withoutCredentials(printed({ status: 401, headers, config, data: { cookie: 'S', author: 'A' } }));
    expect(shown).toBe(
      printed({
        status: 401,
        headers: { 'set-cookie': '••••••••', date: 'now' },
        config: { url: 'http://a', headers: { Authorization: '••••••••', 'X-API-Key': '••••••••', Accept: 'json' }, auth: '••••••••' },
        data: { cookie: '••••••••', author: 'A' },
      }),
    );
  });

  it.each(['Authorization: a', '{"authorization":"a"}', 'export: debug - "authorization"', 'export: debug - {"auth":1'])(
    'is another text, which stays as it is: %s',
    (text) => expect(withoutCredentials(text)).toBe(text),
  );
});
