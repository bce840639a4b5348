import { describe, expect, it } from '@jest/globals';
import { type IdKind, isId } from '#contracts';
import type { HeldKey } from './idempotency.repository.js';
import { repeatableId, repeatableKsuid } from './new-ids.js';

const held: HeldKey = {
  accountId: 'u_1',
  key: 'k',
  fingerprint: Buffer.from('f'),
  claimedAt: '2026-01-02 00:00:09',
  firstAt: new Date('2026-01-02'),
};
const idsOf = (heldKey: HeldKey): string[] => [
  repeatableId('source', heldKey),
  repeatableId('component', heldKey),
  repeatableKsuid(heldKey),
];

describe('the ids of a request with an Idempotency-Key', () => {
  it('are the same at each attempt, in the form of other ids', () => {
    const ids = idsOf(held);
    expect(idsOf({ ...held, claimedAt: '2026-01-02 00:05:00' })).toEqual(ids);
    expect(ids).toEqual([
      expect.stringMatching(/^dc_[0-9A-Za-z]{18}$/),
      expect.stringMatching(/^sc_[0-9A-Za-z]{18}$/),
      expect.stringMatching(/^[0-9A-Za-z]{27}$/),
    ]);
    expect(ids[0]!.slice(3)).not.toBe(ids[1]!.slice(3));
  });

  it.each<[string, Partial<HeldKey>]>([
    ['of another account', { accountId: 'u_2' }],
    ['with another key', { key: 'l' }],
    ['with another payload', { fingerprint: Buffer.from('g') }],
    ['that uses the key again after a day', { firstAt: new Date('2026-01-03') }],
  ])('differ from those of a request %s', (_, other) => {
    expect(new Set([...idsOf(held), ...idsOf({ ...held, ...other })]).size).toBe(6);
  });

  it.each<IdKind>(['source', 'component', 'webhook', 'connection', 'replay', 'apiKey'])('are valid: %s', (kind) => {
    expect(isId(kind, repeatableId(kind, held))).toBe(true);
  });
});
