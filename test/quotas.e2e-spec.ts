import { afterAll, beforeAll, expect } from '@jest/globals';
import type { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { startSystem, type System } from './support/system.js';
import { can, needing } from './support/target.js';

const QUOTAS = { SLUICE_QUOTAS: 'free', SLUICE_DAILY_INVOCATIONS: '2' };

let system: System;
let api: Api;

beforeAll(async () => {
  if (!can('variables')) return;
  system = await startSystem({ variables: { gateway: QUOTAS, runtime: QUOTAS } });
  api = await system.account();
});
afterAll(() => system?.stop());

needing('variables', 'accounts').it('a source over its quota does not run, and its errors report that once', async () => {
  const source = await api.source("export default { name: 'eager', run(e) { this.$emit(e); } }");
  const events = async (stream: string): Promise<any[]> => {
    const { body } = await api.get(`/sources/${source.id}/event_summaries?limit=100&expand=event&event_name=${encodeURIComponent(stream)}`);
    return body.data.map(({ event }: { event: unknown }) => event).reverse();
  };
  for (let n = 0; n < 5; n++) expect((await api.post(`/sources/${source.id}/run`, { event: n })).status).toBe(202);
  await eventually(async () => expect(await events('')).toEqual([0, 1]));
  await eventually(async () => expect((await events('$errors')).map(({ error }) => error.code)).toEqual(['QuotaExceeded']));
  await eventually(async () => {
    expect((await api.get('/users/me')).body.data).toMatchObject({ daily_invocations_quota: 2, daily_invocations_used: 2 });
  });
});
