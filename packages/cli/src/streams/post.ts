import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';

export interface PostRequest {
  headers: Record<string, string>;
  body: string;
}

/**
 * Posts to a server. Resolves with the result of `read`, which consumes the response. Throws an error whose message is the reason if the server cannot be
 * reached, or does not finish in time. Unlike `fetch`, it follows no redirect, and also reaches the ports that browsers block, such as 6000.
 */
export function post<T>(
  url: string,
  { headers, body }: PostRequest,
  withinMs: number,
  read: (response: IncomingMessage) => T | Promise<T>,
): Promise<T> {
  const signal = AbortSignal.timeout(withinMs);
  const request = url.startsWith('https:') ? requestHttps : requestHttp;
  return new Promise<T>((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void =>
      // a host with several addresses has several reasons, and then the error has only their code
      reject(new Error(signal.aborted ? `no complete response within ${withinMs / 1000} s` : error.message || error.code));
    request(url, { method: 'POST', headers: { 'user-agent': 'sluice-cli', ...headers }, signal })
      .on('response', (response) => void Promise.resolve(read(response)).then(resolve, fail))
      .on('error', fail)
      .end(body);
  });
}
