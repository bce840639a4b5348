import { describe, expect, it } from '@jest/globals';
import { readWorkflowRecord } from './workflows.controller.js';

const read = (key: string | null, value: unknown) =>
  readWorkflowRecord(key, value === null ? null : Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));

describe('a record of the registry of workflows', () => {
  it('registers a workflow', () => {
    expect(read('p_1', { id: 'p_1', owner_id: 'u_1', name: 'Mail', active: false })).toEqual({
      id: 'p_1',
      ownerId: 'u_1',
      name: 'Mail',
      active: false,
    });
    expect(read('p_1', { owner_id: 'u_1' })).toEqual({ id: 'p_1', ownerId: 'u_1', name: '', active: true });
  });
  it('registers a workflow whose name is too long under the beginning of the name', () => {
    const nameOf = (name: string) => read('p_1', { owner_id: 'u_1', name });
    expect(nameOf('x'.repeat(1024))).toMatchObject({ name: 'x'.repeat(1024) });
    expect(nameOf('x'.repeat(1_000_000))).toMatchObject({ name: 'x'.repeat(1024) });
    expect(nameOf('🙂'.repeat(2000))).toMatchObject({ name: '🙂'.repeat(1024) });
  });
  it('removes one without a value', () => expect(read('p_1', null)).toEqual({ id: 'p_1', removed: true }));
  it.each([
    ['dc_1', { owner_id: 'u_1' }, 'key'],
    [null, { owner_id: 'u_1' }, 'key'],
    ['p_1', '{', 'not JSON'],
    ['p_1', { id: 'p_2', owner_id: 'u_1' }, 'not the key'],
    ['p_1', { owner_id: 'someone' }, 'owner_id'],
    ['p_1', { owner_id: 'u_1', active: 'yes' }, 'active'],
  ])('a record of %s with %j is refused', (key, value, why) => expect(read(key, value)).toContain(why));
  it('is refused if it is not UTF-8', () =>
    expect(readWorkflowRecord('p_1', Buffer.from('{"owner_id":"u_1","name":"\xe9"}', 'latin1'))).toBe('the value is not UTF-8'));
});
