import { describe, expect, it } from '@jest/globals';
import { connectionContext, type ConnectionCredentials, type ConnectionId, type PropDefinition } from '#contracts';
import { SecretBox } from '#secrets';
import { namedConnections, withCredentials } from './connected-values.js';

const box = new SecretBox([Buffer.alloc(32, 1)]);
const ID: ConnectionId = 'apn_1';
const PROPS: PropDefinition[] = [
  { name: 'chat', type: 'app' },
  { name: 'shop', type: 'app', app: 'acme' },
  { name: 'text', type: 'string' },
];
const connection = (app: string): ConnectionCredentials => ({
  id: ID,
  app,
  credentials: box.seal('{"key":"k"}', connectionContext(ID)),
});
const connected = (values: Record<string, unknown>, found: ConnectionCredentials[]) =>
  withCredentials(values, namedConnections(PROPS, values), found, box);

describe('the values of a call of options()', () => {
  it('contain the credentials of the connections that they name', () => {
    const values = { chat: { authProvisionId: ID, channel: 'c' }, shop: { $auth: { token: 't' } }, text: 'x' };
    expect(connected(values, [connection('chat')])).toEqual({
      ...values,
      chat: { authProvisionId: ID, channel: 'c', $auth: { key: 'k' } },
    });
  });

  it('keep credentials that they contain already', () => {
    const values = { chat: { authProvisionId: ID, $auth: { key: 'own' } } };
    expect(namedConnections(PROPS, values)).toEqual([]);
  });

  it.each([
    ['a connection that does not exist', 'chat', ID, []],
    ['a connection of another app', 'shop', ID, [connection('chat')]],
    ['something that is not an id', 'chat', { id: ID }, [connection('chat')]],
  ])('cannot name %s', (_, prop, authProvisionId, found) => {
    expect(() => connected({ [prop]: { authProvisionId } }, found)).toThrow(
      expect.objectContaining({ details: { errors: [expect.objectContaining({ field: `configured_props.${prop}` })] } }),
    );
  });
});
