import { describe, expect, it } from '@jest/globals';
import type { ConnectionId, PropDefinition, SourceId } from '#contracts';
import { SecretBox } from '#secrets';
import type { ConnectionRow } from './connection.entity.js';
import { connected, namedConnections, withInline } from './source-connections.js';

const box = new SecretBox([Buffer.alloc(32, 1)]);
const PROPS: PropDefinition[] = [
  { name: 'chat', type: 'app', app: 'slack' },
  { name: 'text', type: 'object' },
];
const row = (id: `apn_${string}`, app: string, source_id: SourceId | null = null) =>
  ({ id, app, source_id, credentials: '' }) as ConnectionRow;
const known = [
  row('apn_slack', 'slack'),
  row('apn_other', 'github'),
  row('apn_inline', 'slack', 'dc_other'),
  row('apn_mine', 'slack', 'dc_1'),
];
const sourceId = 'dc_1';
const connect = (chat: unknown, before: Record<string, unknown> = {}) => connected(PROPS, { chat }, { sourceId, before, known, box });

describe('the app props of a source', () => {
  it('use the connection that they name', () => {
    expect(connect({ authProvisionId: 'apn_slack', more: 1 })).toEqual({
      values: { chat: { authProvisionId: 'apn_slack', more: 1 } },
      uses: ['apn_slack'],
      inline: [],
      problems: [],
    });
  });

  it('store inline credentials as a connection of the source, and show them again', () => {
    const { values, uses, inline } = connect({ $auth: { key: 'secret' }, more: 1 });
    expect(JSON.stringify([values, uses, inline])).not.toContain('secret');
    expect(inline).toMatchObject([{ id: uses[0], app: 'slack', name: 'slack' }]);
    const credentials = { [uses[0]!]: inline[0]!.credentials };
    const shown = withInline(PROPS, values, credentials, box);
    expect(shown).toEqual({ chat: { authProvisionId: uses[0], $auth: { key: 'secret' }, more: 1 } });

    const reconnect = (chat: unknown) =>
      connected(PROPS, { chat }, { sourceId, before: values, known: [row(uses[0]!, 'slack', sourceId)], box });
    // as it was shown, with other credentials: the same connection
    const changed = reconnect({ authProvisionId: uses[0], $auth: { key: 'new' } });
    expect(changed).toMatchObject({ uses, inline: [{ id: uses[0] }], problems: [] });
    expect(reconnect({ $auth: { key: 'new' } }).uses).toEqual(uses);
    // only its id: it keeps what it has
    expect(reconnect({ authProvisionId: uses[0] })).toMatchObject({ uses, inline: [], values: { chat: { $auth: {} } } });
  });

  it.each([[{}], [null], [{ key: null }], ['text']])('use a shared connection with $auth %j as one without it', ($auth) => {
    const value = { authProvisionId: 'apn_slack', $auth };
    const shared = { values: { chat: { authProvisionId: 'apn_slack' } }, uses: ['apn_slack'], inline: [], problems: [] };
    expect(connect(value)).toEqual(shared);
    // as earlier versions stored it
    expect(connect(value, { chat: value })).toEqual(shared);
  });

  it('keep a shared connection beside which an earlier version stored $auth, but do not change its credentials', () => {
    const before = { chat: { authProvisionId: 'apn_slack', $auth: {} } };
    const credentials = box.seal(JSON.stringify({ key: 'secret' }), 'connection apn_slack');
    const shared = { ...row('apn_slack', 'slack'), credentials };
    const change = ($auth: unknown) =>
      connected(PROPS, { chat: { authProvisionId: 'apn_slack', $auth } }, { sourceId, before, known: [shared], box });
    // as responses show it
    expect(change({ key: 'secret' })).toMatchObject({ values: { chat: { authProvisionId: 'apn_slack' } }, inline: [], problems: [] });
    expect(change({ key: 'new' })).toMatchObject({ inline: [], problems: [{ message: expect.stringContaining('must not have both') }] });
    const own = connected(PROPS, { chat: { $auth: { key: 'new' } } }, { sourceId, before, known: [shared], box });
    expect(own.uses).toEqual([own.inline[0]?.id]);
    expect(own.uses).not.toContain('apn_slack');
  });

  it('have no credentials without a value', () => {
    const none = { values: { chat: { $auth: {} } }, uses: [], inline: [], problems: [] };
    expect([connect({ $auth: {} }), connect({ $auth: { key: null } })]).toEqual([none, none]);
    const { inline } = connect({ $auth: { key: 'k', other: null } });
    expect(box.open(inline[0]!.credentials, `connection ${inline[0]!.id}`)).toBe('{"key":"k"}');
  });

  it.each<[string, unknown, RegExp]>([
    ['a connection that does not exist', { authProvisionId: 'apn_nothing' }, /does not exist/],
    ['no id of a connection', { authProvisionId: 5 }, /does not exist/],
    ['a connection of another app', { authProvisionId: 'apn_other' }, /of the app github, not slack/],
    ['a connection that is stored with another source', { authProvisionId: 'apn_inline' }, /names the connection of the source dc_other/],
    ['a connection and credentials', { authProvisionId: 'apn_slack', $auth: { a: 1 } }, /must not have both/],
  ])('reject %s', (_, value, message) => {
    expect(connect(value).problems).toEqual([{ field: 'configured_props.chat', message: expect.stringMatching(message) }]);
  });

  it('use the connection of another prop of the source, and one that the source has used before', () => {
    expect(connect({ authProvisionId: 'apn_mine' })).toMatchObject({ uses: ['apn_mine'], problems: [] });
    const kept = { authProvisionId: 'apn_inline' };
    expect(connect(kept, { chat: kept })).toMatchObject({ uses: ['apn_inline'], problems: [] });
  });

  it('are at most 32 of a source, however large it is', () => {
    const props = Array.from({ length: 33 }, (_, n) => ({ ...PROPS[0]!, name: `chat${n}` }));
    const of = (count: number) => Object.fromEntries(props.slice(0, count).map(({ name }) => [name, { $auth: { a: 1 } }]));
    expect(connected(props, of(32), { sourceId, before: {}, known, box }).problems).toEqual([]);
    expect(connected(props, of(33), { sourceId, before: {}, known, box }).problems).toEqual([
      { field: 'configured_props', message: 'configured_props use 33 connections; the limit is 32' },
    ]);
  });

  it('have at most 256 KiB of encrypted credentials together, each connection counted once', () => {
    const props = Array.from({ length: 6 }, (_, n) => ({ ...PROPS[0]!, name: `chat${n}` }));
    const large = [1, 2, 3, 4, 5].map((n) => ({ ...known[0]!, id: `apn_${n}` as ConnectionId, credentials: 'x'.repeat(60_000) }));
    const problems = (ids: number[]) => {
      const values = Object.fromEntries(ids.map((id, n) => [`chat${n}`, { authProvisionId: `apn_${id}` }]));
      return connected(props, values, { sourceId, before: {}, known: large, box }).problems;
    };
    expect(problems([1, 2, 3, 4, 4, 4])).toEqual([]);
    expect(problems([1, 2, 3, 4, 5])).toEqual([
      { field: 'configured_props', message: 'configured_props use 300000 bytes of encrypted credentials; the limit is 262144' },
    ]);
  });

  it.each([[{}], [{ $auth: {} }], [{ more: 1 }], [null], ['text']])('need no connection for %j', (value) => {
    expect(connect(value)).toEqual({ values: { chat: value }, uses: [], inline: [], problems: [] });
  });

  it('have no credentials if they name a member of every object', () => {
    const values = { chat: { authProvisionId: 'constructor', $auth: {} } };
    expect(withInline(PROPS, values, {}, box)).toEqual(values);
  });

  it('are the only ones that use connections', () => {
    const value = { authProvisionId: 'apn_nothing', $auth: { a: 1 } };
    expect(connected(PROPS, { text: value }, { sourceId, before: {}, known, box })).toMatchObject({ uses: [], inline: [], problems: [] });
    const credentials = { apn_nothing: box.seal('{"a":"secret"}', 'connection apn_nothing') };
    expect(withInline(PROPS, { text: value }, credentials, box)).toEqual({ text: value });
    expect(namedConnections({ text: value, chat: { authProvisionId: 'no id' } })).toEqual(['apn_nothing']);
  });
});
