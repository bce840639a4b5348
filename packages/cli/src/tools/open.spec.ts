import { expect, it } from '@jest/globals';
import type { Session } from '../session/session.js';
import { open, openerOf } from './open.js';

it.each<[NodeJS.Platform, string[]]>([
  ['win32', ['rundll32', 'url.dll,FileProtocolHandler']],
  ['darwin', ['open']],
  ['linux', ['xdg-open']],
  ['freebsd', ['xdg-open']],
])('a browser on %s is opened without a shell, which would run parts of an address', (platform, opener) => {
  expect(openerOf(platform)).toEqual(opener);
});

it.each(['file:///etc/passwd', 'calc.exe', '--version', 'javascript:alert(1)'])(
  'refuses to open %s, because it is not an address of the web',
  async (url) => {
    const session = {
      ...{ format: 'table', isInteractive: true, print: () => {} },
      sluice: {
        each: async function* (page: (query: object) => Promise<{ data: object[] }>) {
          yield* (await page({})).data;
        },
        listWebhooks: async () => ({ data: [{ id: 'wh_1', name: 'inbox', url }] }),
        listSources: async () => ({ data: [] }),
      },
    } as unknown as Session;
    await expect(open(session, 'inbox')).rejects.toMatchObject({
      code: 1,
      message: `${url} is not an address of the web: it is not opened`,
    });
  },
);
