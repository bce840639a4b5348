import { afterAll, beforeAll, it } from '@jest/globals';
import fc from 'fast-check';
import type { Api } from './support/api.js';
import { joinSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

let system: System;
let api: Api;
let component: string;
beforeAll(async () => {
  system = await joinSystem();
  api = await system.account();
  component = await api.component("export default { name: 'Paged' }");
});
afterAll(() => system?.stop());

const add = {
  sources: async () => (await api.post('/sources', { component_id: component })).body.data.id as string,
  webhooks: () => api.webhook('https://example.com/'),
};

/** The changes between two pages of a walk: new items, and deleted items at these places (as a share of the list). */
const change = fc.record({ adds: fc.nat({ max: 2 }), removes: fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { maxLength: 2 }) });
const walk = fc.record({ limit: fc.integer({ min: 1, max: 7 }), forward: fc.boolean(), changes: fc.array(change, { maxLength: 6 }) });

// it walks over everything that the account has
needing('accounts').describe.each(['sources', 'webhooks'] as const)(
  'walking the pages of %s while others are created and deleted',
  (kind) => {
    it('repeats no item, and skips none that exists throughout', async () => {
      await Promise.all(Array.from({ length: 12 }, add[kind]));
      let present: string[] = [];
      await fc.assert(
        fc.asyncProperty(walk, async ({ limit, forward, changes }) => {
          present = (await api.get(`/users/me/${kind}?limit=100`)).body.data.map(({ id }: { id: string }) => id);
          const throughout = new Set(present);
          const seen: string[] = [];
          // backwards from behind the oldest
          let cursor: string | null = forward ? '' : Buffer.from(`${kind === 'sources' ? 'dc' : 'wh'}_0`).toString('base64url');
          for (let step = 0; cursor !== null; step++) {
            const { data, page_info }: { data: { id: string }[]; page_info: Record<string, string | null> } = (
              await api.get(`/users/me/${kind}?limit=${limit}&${forward ? 'after' : 'before'}=${cursor}`)
            ).body;
            const ids: string[] = data.map(({ id }) => id);
            seen.push(...(forward ? ids : ids.reverse()));
            cursor = (forward ? page_info.end_cursor : page_info.start_cursor) ?? null;
            const { adds, removes } = changes[step] ?? { adds: 0, removes: [] };
            for (let n = 0; n < adds; n++) present.unshift(await add[kind]());
            for (const place of removes) {
              const [gone] = present.splice(Math.floor(place * present.length), 1);
              if (gone) await api.delete(`/${kind}/${gone}`);
              throughout.delete(gone ?? '');
            }
          }
          if (new Set(seen).size !== seen.length)
            throw new Error(`shown twice: ${seen.filter((id, at) => seen.indexOf(id) !== at).join(', ')}`);
          const skipped = [...throughout].filter((id) => !seen.includes(id));
          if (skipped.length > 0) throw new Error(`skipped: ${skipped.join(', ')}`);
          const sorted = [...seen].sort();
          if (!forward !== (seen.join() === sorted.join()) && seen.length > 1) throw new Error('not in the order of creation');
        }),
        { numRuns: 12, endOnFailure: true },
      );
    });
  },
);
