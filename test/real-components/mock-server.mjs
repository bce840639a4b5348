import { createServer as createPlainServer } from 'node:http';
import { createServer } from 'node:https';
import { URLSearchParams } from 'node:url';
import { makeTestCertificate } from '../../dist/libs/testing/src/test-certificate.js';
import { anything, routes } from './samples.mjs';

/**
 * @typedef {object} Call a request of a component
 * @property {string} to such as `GET api.example.com/things`, without the query
 * @property {URLSearchParams} query
 * @property {import('node:http').IncomingHttpHeaders} headers
 * @property {any} body
 */

/**
 * All APIs that components call: one server for all host names, on the ordinary ports of an address of this machine.
 * Requests that no sample describes get an object and list of everything, so that most sources find what they look for.
 *
 * @param {string} address
 * @param {string[]} hosts
 */
export async function startMockServer(address, hosts) {
  const { key, cert } = makeTestCertificate(hosts);
  /** @type {Call[]} */
  let calls = [];
  /** @type {import('node:http').RequestListener} */
  const handle = (request, response) => {
    /** @type {Buffer[]} */
    const chunks = [];
    request.on('data', (/** @type {Buffer} */ chunk) => chunks.push(chunk));
    request.on('end', () => {
      const url = new URL(request.url ?? '/', `https://${request.headers.host}`);
      const call = {
        to: `${request.method} ${url.hostname}${url.pathname}`,
        query: url.searchParams,
        headers: request.headers,
        body: parsed(Buffer.concat(chunks).toString('utf8')),
      };
      calls.push(call);
      const body = responseTo(call, calls);
      const isText = typeof body === 'string';
      response.writeHead(body === undefined ? 404 : 200, {
        'content-type': isText ? 'application/xml' : 'application/json',
        // paging as GitLab does it: this is the only page
        link: `<${url.href}>; rel="first"`,
      });
      response.end(isText ? body : JSON.stringify(body ?? {}));
    });
  };
  const servers = [createServer({ key, cert }, handle), createPlainServer(handle)];
  for (const [index, server] of servers.entries())
    await new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(index === 0 ? 443 : 80, address, () => resolve(undefined));
    });
  return {
    cert,
    /** Forgets the requests of earlier sources. */
    reset: () => void (calls = []),
    calls: () => calls,
    close: () => {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}

/**
 * @param {Call} call
 * @param {Call[]} calls with this one
 */
function responseTo(call, calls) {
  const [, route] = routes.find(([pattern]) => (typeof pattern === 'string' ? pattern === call.to : pattern.test(call.to))) ?? [];
  const nth = calls.filter(({ to }) => to === call.to).length;
  if (typeof route === 'function') return route(call, nth);
  return route ?? (call.to.startsWith('DELETE ') ? {} : anything());
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return Object.fromEntries(new URLSearchParams(text));
  }
}
