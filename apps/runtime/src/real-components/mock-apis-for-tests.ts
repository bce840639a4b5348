import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { makeTestCertificate } from '#testing';

export interface ApiRequest {
  /** `GET api.example.com/things`: without the query */
  to: string;
  query: URLSearchParams;
  headers: Record<string, string | string[] | undefined>;
  body: any;
}

/** The responses of APIs, by `GET api.example.com/things`: JSON, a text sent unchanged, or a function of the request. */
export type ApiRoutes = Record<string, unknown>;

export type MockApis = Awaited<ReturnType<typeof startMockApis>>;

/** All APIs that the real components call: one TLS server on loopback for all their host names. Unknown paths return 404. */
export async function startMockApis(hosts: string[]) {
  const { key, cert } = makeTestCertificate(hosts);
  let routes: ApiRoutes = {};
  let requests: ApiRequest[] = [];
  const server = createServer({ key, cert }, (incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const url = new URL(incoming.url ?? '/', `https://${incoming.headers.host}`);
      const text = Buffer.concat(chunks).toString('utf8');
      const request = {
        to: `${incoming.method} ${url.hostname}${url.pathname}`,
        query: url.searchParams,
        headers: incoming.headers,
        body: parsed(text),
      };
      requests.push(request);
      const route = routes[request.to];
      const body = typeof route === 'function' ? (route as (request: ApiRequest) => unknown)(request) : route;
      const isText = typeof body === 'string';
      response.writeHead(body === undefined ? 404 : 200, { 'content-type': isText ? 'application/xml' : 'application/json' });
      response.end(isText ? body : JSON.stringify(body ?? { error: 'no such route' }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    cert,
    port,
    allowed: `127.0.0.1:${port}`,
    lookup: async (host: string) => {
      if (!hosts.includes(host)) throw new Error('ENOTFOUND');
      return [{ address: '127.0.0.1' }];
    },
    /** Replaces the APIs and clears the recorded requests. */
    play: (next: ApiRoutes) => {
      routes = next;
      requests = [];
    },
    /** The requests since the last call. */
    taken: () => requests.splice(0),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
