import { afterAll, expect } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { node24 } from '../scripts/setup/node24.mjs';
import { inRoot } from '../scripts/shell/paths.mjs';
import { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { SECRETS_KEY as OLD } from './support/secrets-key.mjs';
import { startSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

const NEW = Buffer.alloc(32, 'rotated').toString('base64url');
const WRONG = Buffer.alloc(32, 'wrong').toString('base64url');
/** The message if the list lacks the key. */
const MISSING = /SLUICE_SECRETS_KEY does not contain the key [0-9a-f]{8}, which encrypted the secrets of [^"]+; add this key to the list/;

const CODE = `
  const demo = { type: 'app', app: 'demo' };
  export default {
    name: 'Keeper',
    props: { token: { type: 'string', secret: true }, demo, other: { type: 'app', app: 'demo' } },
    run() { this.$emit([this.token, this.demo.$auth.key, this.other.$auth.key]); },
  };`;

let system: System | undefined;
afterAll(() => system?.stop());

const start = (keys: string): Promise<System> => startSystem({ variables: { catalog: { SLUICE_SECRETS_KEY: keys } } });
const stop = async (): Promise<void> => {
  await system?.stop();
  system = undefined;
};

/** Runs `sluice secrets rotate` as an operator does. */
async function rotate(keys: string): Promise<{ code: number; output: string }> {
  const env = { ...process.env, DATABASE_URL: process.env.SLUICE_TEST_DATABASE_URL, SLUICE_SECRETS_KEY: keys };
  const run = promisify(execFile)(node24(), [inRoot('scripts/sluice.mjs'), 'secrets', 'rotate'], { env });
  return run.then(
    ({ stdout }) => ({ code: 0, output: stdout }),
    ({ code, stdout, stderr }) => ({ code: code as number, output: `${stdout}${stderr}` }),
  );
}

needing('processes', 'databases', 'control').it('secrets survive a wrong key and a rotation', async () => {
  system = await start(OLD);
  const { account } = await system.account();
  let api = new Api(system.apiUrl, account);
  const connection = (await api.post('/connections', { app: 'demo', credentials: { key: 'in a connection' } })).body.data.id as string;
  const source = await api.source(CODE, {
    configured_props: { token: 'in a prop', demo: { $auth: { key: 'inline' } }, other: { authProvisionId: connection } },
  });
  const webhook = await api.webhook('http://localhost:1/');
  const secretOf = async () => (await api.get(`/webhooks/${webhook}/secret`)).body.data.secret as string;
  const secret = await secretOf();

  let runs = 0;
  const expectAll = async (): Promise<void> => {
    expect(await secretOf()).toBe(secret);
    await api.post(`/sources/${source.id}/run`, {});
    runs++;
    await eventually(async () => {
      const { data } = (await api.get(`/sources/${source.id}/event_summaries`)).body;
      expect(data.map(({ event }: { event: unknown }) => event)).toEqual(
        Array.from({ length: runs }, () => ['in a prop', 'inline', 'in a connection']),
      );
    });
  };
  const restart = async (keys: string): Promise<void> => {
    await stop();
    system = await start(keys);
    api = new Api(system.apiUrl, account);
  };
  await expectAll();
  await stop();

  // neither the services nor the rotation do anything with a wrong key
  await expect(start(WRONG)).rejects.toThrow(MISSING);
  const refused = await rotate(WRONG);
  expect(refused).toEqual({ code: 1, output: expect.stringMatching(MISSING) });
  // a key without the old one behind it would make everything else unreadable
  expect(await rotate(NEW)).toEqual({ code: 1, output: expect.stringMatching(MISSING) });

  await restart(`${NEW},${OLD}`);
  await expectAll();
  const rotated = await rotate(`${NEW},${OLD}`);
  expect(rotated).toEqual({ code: 0, output: expect.stringContaining('secrets.rotated') });
  // everything is encrypted under the new key already
  const repeated = await rotate(`${NEW},${OLD}`);
  expect(repeated.output).not.toContain('secrets.rotated');
  expect(JSON.parse(repeated.output.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({ msg: 'rotation.completed', values: 0 });
  await expectAll();

  await restart(NEW);
  await expectAll();
  await stop();
  await expect(start(OLD)).rejects.toThrow(MISSING);

  // the next story has the old key
  await restart(`${OLD},${NEW}`);
  expect((await rotate(`${OLD},${NEW}`)).code).toBe(0);
  await expectAll();
  expect((await api.delete(`/sources/${source.id}`)).status).toBe(204);
});
