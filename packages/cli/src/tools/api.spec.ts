import { expect, it } from '@jest/globals';
import { UnreachableError } from '@sluice/client';
import type { Session } from '../session/session.js';
import { api } from './api.js';

/** An account whose API has one operation, `call`, with this response. */
function terminal(respond: () => Response, title = 'Sluice') {
  const [printed, sent]: [string[], (string | undefined)[]] = [[], []];
  const session = {
    ...{ format: 'table', access: { url: 'http://here' }, print: (text: string) => printed.push(text) },
    ...{ endWithReader: () => {}, printNext: async (text: string) => printed.push(text) },
    request: async (path: string, { body }: { body?: string } = {}) => {
      if (path === '/openapi.json')
        return Response.json({ info: { title }, paths: { '/call': { post: { operationId: 'call', requestBody: {} } } } });
      sent.push(body);
      return respond();
    },
  };
  return { session: session as unknown as Session, printed, sent };
}

it('sends and shows numbers as they are written', async () => {
  const text = '{"id":12345678901234567890,"huge":1e400}';
  const { session, printed, sent } = terminal(() => new Response(text));
  await api(session, 'call', [], { data: text });
  expect([sent, printed]).toEqual([[text], ['{\n  "id": 12345678901234567890,\n  "huge": 1e400\n}\n']]);
});

/** An account with the source `orders`, whose API has one operation, `getSource`. */
function terminalWithSource() {
  const paths: string[] = [];
  const get = { operationId: 'getSource', parameters: [{ name: 'id', in: 'path', required: true }] };
  const session = {
    ...{ format: 'table', print: () => {} },
    sluice: {
      each: async function* () {
        yield { id: 'dc_1', name_slug: 'orders' };
      },
    },
    request: async (path: string) => {
      if (path === '/openapi.json') return Response.json({ info: { title: 'Sluice' }, paths: { '/v1/sources/{id}/runs': { get } } });
      paths.push(path);
      return new Response('{}');
    },
  };
  return { session: session as unknown as Session, paths };
}

it('accepts the whole name of a resource instead of its id', async () => {
  const { session, paths } = terminalWithSource();
  await api(session, 'getSource', ['id=orders'], {});
  await api(session, 'getSource', ['id=dc_2'], {});
  expect(paths).toEqual(['/v1/sources/dc_1/runs', '/v1/sources/dc_2/runs']);
});

it('does not accept the beginning of a name', async () => {
  const { session } = terminalWithSource();
  await expect(api(session, 'getSource', ['id=order'], {})).rejects.toThrow('if you mean orders, give its whole name');
});

it('reports wrong usage before it looks a name up', async () => {
  const { session } = terminalWithSource();
  await expect(api(session, 'getSource', ['id=none', 'idd=2'], {})).rejects.toThrow('getSource has no parameter idd');
});

it('fails with one line if a stream breaks off', async () => {
  const broken = new ReadableStream({
    start: (stream) => stream.enqueue(new TextEncoder().encode('data: 1\n')),
    pull: () => Promise.reject(new TypeError('terminated')),
  });
  const { session } = terminal(() => new Response(broken, { headers: { 'content-type': 'text/event-stream' } }));
  const error: unknown = await api(session, 'call', [], {}).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(UnreachableError);
  expect((error as Error).message).toBe('the stream has ended: terminated');
});

it('reports a server that is not Sluice', async () => {
  const { session } = terminal(() => new Response(), 'Other');
  const message = 'http://here did not return the description of Sluice: the URL may be wrong';
  await expect(api(session, undefined, [], {})).rejects.toMatchObject({ name: 'UnreachableError', message });
});
