import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';

/** As long as Sluice waits for a receiver. */
const WITHIN_MS = 15_000;

/**
 * Posts JSON to a server, and returns the status of the response. Throws an error whose message is the reason. Unlike `fetch`, it also reaches the ports that
 * browsers block, such as 6000.
 */
export function post(url: string, body: string, headers: Record<string, string>, withinMs = WITHIN_MS): Promise<number> {
  const signal = AbortSignal.timeout(withinMs);
  const request = url.startsWith('https:') ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    request(url, { method: 'POST', headers: { 'user-agent': 'sluice-cli', ...headers }, signal })
      .on('response', (response) => resolve(response.resume().statusCode!))
      .on('error', (error: NodeJS.ErrnoException) =>
        // a host with several addresses has several reasons, and then the error has only their code
        reject(new Error(signal.aborted ? `no response within ${withinMs / 1000} s` : error.message || error.code)),
      )
      .end(body);
  });
}
