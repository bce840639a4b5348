import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { SMTPServer } from 'smtp-server';
import type { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { startSystem, type System } from './support/system.js';
import { listenForTarget, needing } from './support/target.js';

let system: System;
let api: Api;
let server: SMTPServer;
/** Other sources of the instance have errors, too. */
const [OWNER, SILENT] = ['owner', 'silent'].map((name) => `${name}-${Date.now()}@example.com`);
/** The mail server responds to a mail to this address after a while. */
const SLOW = `slow-${Date.now()}@example.com`;
const SLOW_MS = 12_000;
const mails: { to: string; text: string }[] = [];

beforeAll(async () => {
  server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const to = session.envelope.rcptTo[0]?.address ?? '';
        mails.push({ to, text: Buffer.concat(chunks).toString('utf8') });
        setTimeout(done, to === SLOW ? SLOW_MS : 0);
      });
    },
  });
  const address = await listenForTarget(server.server);
  system = await startSystem({ variables: { gateway: { SLUICE_SMTP_URL: `smtp://${address}` } } });
  api = await system.account(OWNER);
});
afterAll(async () => {
  await system?.stop();
  await new Promise<void>((resolve) => server.close(() => resolve()));
});

needing('variables', 'receiver', 'accounts').describe('errors of a source', () => {
  it('are mailed to the owner, once per code', async () => {
    const source = await api.source(
      "export default { name: 'failing', run(e) { throw Object.assign(new Error('no luck'), { code: e.code }); } }",
    );
    for (const code of ['FIRST', 'FIRST', 'SECOND', 'FIRST', 'THIRD']) await api.post(`/sources/${source.id}/run`, { event: { code } });
    const subjects = () => mails.filter(({ text }) => text.includes(source.id)).map(({ text }) => /Subject: (.*)/.exec(text)?.[1]?.trim());
    await eventually(() => expect(subjects()).toContain(`[Sluice] THIRD in ${source.id}`));
    expect(subjects().sort()).toEqual(['FIRST', 'SECOND', 'THIRD'].map((code) => `[Sluice] ${code} in ${source.id}`));
    expect(new Set(mails.filter(({ text }) => text.includes(source.id)).map(({ to }) => to))).toEqual(new Set([OWNER]));
  });

  it('are mailed at most a hundred times a day to one account, and still to others', async () => {
    const flooded = `flooded-${Date.now()}@example.com`;
    const account = await system.account(flooded);
    const [loud, other] = [await account.source("export default { name: 'loud' }"), await api.source("export default { name: 'other' }")];
    const raise = (client: Api, id: string, codes: string[]) => {
      const events = codes.map((code) => ({
        specversion: '1.0',
        id: code,
        source: 's',
        type: '$errors',
        sluicestream: '$errors',
        data: { error: { code } },
      }));
      const headers = { 'content-type': 'application/cloudevents-batch+json' };
      return client.raw('POST', `/sources/${id}/events`, JSON.stringify(events), headers);
    };
    expect(
      (
        await raise(
          account,
          loud.id,
          Array.from({ length: 130 }, (_, n) => `CODE${n}`),
        )
      ).status,
    ).toBe(202);
    const received = (address: string) => mails.filter(({ to }) => to === address).length;
    await eventually(() => expect(received(flooded)).toBeGreaterThanOrEqual(100), { withinMs: 60_000 });
    await raise(api, other.id, ['ANOTHER']);
    await eventually(() => expect(mails.some(({ text }) => text.includes(other.id))).toBe(true));
    expect(received(flooded)).toBe(100);
    expect(mails.filter(({ to, text }) => to === flooded && text.includes('This is the last mail for now'))).toHaveLength(1);
  });

  it('are mailed once, also if the mail server takes long to respond', async () => {
    const slow = await system.account(SLOW);
    const code = "export default { name: 'failing', run() { throw new Error('no luck'); } }";
    const [first, second] = [await slow.source(code), await slow.source(code)];
    const count = (id: string) => mails.filter(({ text }) => text.includes(id)).length;
    await slow.post(`/sources/${first.id}/run`);
    await eventually(() => expect(count(first.id)).toBeGreaterThan(0));
    await slow.post(`/sources/${second.id}/run`);
    await eventually(() => expect(count(second.id)).toBeGreaterThan(0), { withinMs: 60_000 });
    expect(count(first.id)).toBe(1);
  });

  it('are not mailed to an owner who has switched error mail off', async () => {
    const silent = await system.account(SILENT);
    await system.sluice('account', 'error-mail', silent.account.id, 'off');
    const code = "export default { name: 'failing', run() { throw new Error('no luck'); } }";
    const [unmailed, mailed] = [await silent.source(code), await api.source(code)];
    await silent.post(`/sources/${unmailed.id}/run`);
    await eventually(async () => {
      const { body } = await silent.get(`/sources/${unmailed.id}/event_summaries?event_name=$errors`);
      expect(body.data).toHaveLength(1);
    });
    await api.post(`/sources/${mailed.id}/run`);
    await eventually(() => expect(mails.some(({ text }) => text.includes(mailed.id))).toBe(true));
    expect(mails.some(({ to }) => to === SILENT)).toBe(false);
  });
});
