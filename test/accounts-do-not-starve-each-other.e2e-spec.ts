import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { startSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

const NEVER_ENDS =
  "export default { name: 'never', props: { http: '$.interface.http' }, run() { return new Promise(() => { setInterval(() => {}, 1e6) }) } }";
const ENDS = "export default { name: 'ends', props: { http: '$.interface.http' }, run(event) { this.$emit({ n: event.body.n }) } }";
/** More than the lanes of a replica can contain for all accounts together. */
const FLOOD = 1500;

let system: System;
let greedy: Api;
let modest: Api;

beforeAll(async () => {
  system = await startSystem();
  [greedy, modest] = [await system.account(), await system.account()];
});
afterAll(() => system?.stop());

needing('accounts').describe('an account with 1500 runs that never end', () => {
  it('does not delay the runs of another account, and its runs are deleted with their source', async () => {
    const [never, ends] = [await greedy.source(NEVER_ENDS), await modest.source(ENDS)];
    for (let n = 0; n < FLOOD; n += 50)
      await Promise.all(Array.from({ length: 50 }, (_, each) => greedy.post(`/sources/${never.id}/run`, { event: { n: n + each } })));

    for (let n = 0; n < 10; n++) await modest.post(`/sources/${ends.id}/run`, { event: { body: { n } } });
    const emitted = async () => (await modest.get(`/sources/${ends.id}/event_summaries?limit=100`)).body.data;
    await eventually(async () => expect(await emitted()).toHaveLength(10));

    expect((await greedy.delete(`/sources/${never.id}`)).status).toBe(204);
    // the waiting runs of a deleted source are not skipped one by one: the account's next source runs at once
    const after = await greedy.source(ENDS, { name: 'after' });
    await greedy.post(`/sources/${after.id}/run`, { event: { body: { n: 1 } } });
    await eventually(async () => expect((await greedy.get(`/sources/${after.id}/event_summaries`)).body.data).toHaveLength(1), {
      withinMs: 60_000,
    });
  });
});
