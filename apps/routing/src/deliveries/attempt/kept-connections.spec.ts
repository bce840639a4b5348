import { beforeEach, describe, expect, it } from '@jest/globals';
import { MAX_IDLE_MS } from '#egress';
import { KeptConnections, MAX_ORIGINS } from './kept-connections.js';

describe('the connections of an account', () => {
  let connections: KeptConnections;
  beforeEach(() => {
    connections = new KeptConnections();
    for (let port = 0; port < MAX_ORIGINS; port++) expect(connections.keeps('u_1', `http://a.test:${port}`, 0)).toBe(true);
  });

  it('are kept to a limited number of origins', () => expect(connections.keeps('u_1', 'http://b.test', MAX_IDLE_MS - 1)).toBe(false));

  it('are kept to the origins that came first', () => expect(connections.keeps('u_1', 'http://a.test:0', MAX_IDLE_MS - 1)).toBe(true));

  it('do not count for other accounts', () => expect(connections.keeps('u_2', 'http://b.test', MAX_IDLE_MS - 1)).toBe(true));

  it('are kept to other origins when the idle ones have been closed', () =>
    expect(connections.keeps('u_1', 'http://b.test', MAX_IDLE_MS)).toBe(true));
});
