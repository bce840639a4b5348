import { expect, it } from '@jest/globals';
import type { Session } from '../session/session.js';
import { verify } from './verify.js';

it('reports a malformed secret as wrong usage, not as a delivery that is not authentic', async () => {
  const session = { env: { SLUICE_WEBHOOK_SECRET: 'nope' }, stdinBytes: async () => Buffer.from('{}') };
  await expect(verify(session as unknown as Session, { header: ['webhook-id: msg_1'] })).rejects.toMatchObject({
    ...{ code: 2, message: expect.stringContaining('the secret must be whsec_ followed by base64') },
  });
});
