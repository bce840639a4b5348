import { Agent, request as begin } from 'node:http';

const agent = new Agent({ keepAlive: true });

/**
 * One request to the REST API. Rejects if the connection fails, or if there is no response within 30 s.
 *
 * @param {string} method @param {string} url
 * @param {{ apiKey: string, body?: object }} options
 * @returns {Promise<{ status: number, body: any }>}
 */
export const request = (method, url, { apiKey, body }) =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${apiKey}`, ...(body ? { 'content-type': 'application/json' } : {}) };
    const outgoing = begin(url, { method, agent, headers, timeout: 30_000 }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part) => (text += part));
      response.on('error', reject);
      response.on('end', () => {
        try {
          resolve({ status: response.statusCode ?? 0, body: text === '' ? undefined : JSON.parse(text) });
        } catch (error) {
          reject(error);
        }
      });
    });
    outgoing.on('timeout', () => outgoing.destroy(Object.assign(new Error('no response'), { code: 'no response in 30 s' })));
    outgoing.on('error', reject);
    outgoing.end(body && JSON.stringify(body));
  });
