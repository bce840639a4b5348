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

needing('variables', 'accounts').it(
  'a source over its quota does not run, its errors report that once, and each accepted run is executed',
  async () => {
    const source = await api.source("export default { name: 'eager', run(e) { this.$emit(e); } }");
    const events = async (stream: string): Promise<any[]> => {
      const { body } = await api.get(
        `/sources/${source.id}/event_summaries?limit=100&expand=event&event_name=${encodeURIComponent(stream)}`,
      );
      return body.data.map(({ event }: { event: unknown }) => event).reverse();
    };
    const responses = await Promise.all([0, 1, 2, 3, 4].map((event) => api.post(`/sources/${source.id}/run`, { event })));
    expect(responses.map(({ status }) => status).toSorted()).toEqual([202, 202, 429, 429, 429]);
    expect(responses.find(({ status }) => status === 429)?.body.detail).toContain('quota');
    await eventually(async () => expect(await events('')).toHaveLength(2));
    await eventually(async () => expect((await events('$errors')).map(({ error }) => error.code)).toEqual(['QuotaExceeded']));
    await eventually(async () => {
      expect((await api.get('/users/me')).body.data).toMatchObject({ daily_invocations_quota: 2, daily_invocations_used: 2 });
    });
  },
);
