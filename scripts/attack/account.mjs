/**
 * The response to a request of an account.
 * @typedef {{ status: number, text: string, data: any }} Response `data`: of the JSON in `text`; undefined if there is none
 */

/** Counts its runs, and reports each: to its client, and by an event. A malformed frame ends its process. */
const COUNTS = `import { writeSync } from 'fs';
export default {
  name: 'Counts',
  props: { db: '$.service.db', http: { type: '$.interface.http', customResponse: true } },
  run(event) {
    if (event.query?.end) return writeSync(3, Buffer.alloc(4, 255));
    const count = (this.db.get('count') ?? 0) + 1;
    this.db.set('count', count);
    this.$emit({ count, sent: event.sent });
    if (event.query) this.http.respond({ status: 200, body: { count } });
  },
}`;

/**
 * An account of an instance.
 *
 * @param {string} apiUrl with the version
 * @param {string} key
 * @param {AbortSignal} [stopped] from then on, calls fail
 */
export function openAccount(apiUrl, key, stopped) {
  /** Paths of the sources and webhooks that it has created. @type {Set<string>} */
  const created = new Set();
  /**
   * @param {string} method @param {string} path @param {object} [body]
   * @returns {Promise<Response>}
   */
  const send = async (method, path, body) => {
    const headers = { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) };
    const response = await fetch(`${apiUrl}${path}`, { method, headers, body: body && JSON.stringify(body) });
    const text = await response.text();
    return { status: response.status, text, data: dataOf(text) };
  };
  /** @type {typeof send} */
  const call = async (method, path, body) => {
    stopped?.throwIfAborted();
    const response = await send(method, path, body);
    if (method === 'POST' && ['/sources', '/webhooks'].includes(path) && response.data) created.add(`${path}/${response.data.id}`);
    return response;
  };
  return {
    call,
    /**
     * Like `call`, for a request that must succeed.
     * @param {string} method @param {string} path @param {object} [body]
     * @returns {Promise<any>} `data` of the response
     */
    must: async (method, path, body) => {
      const { status, text, data } = await call(method, path, body);
      if (status >= 300) throw new Error(`${method} ${path} returned ${status}: ${text.slice(0, 300)}`);
      return data;
    },
    /** Deletes its sources and webhooks. */
    removeAll: async () => {
      for (const path of created) if ((await send('DELETE', path)).status < 500) created.delete(path);
    },
  };
}

/** @typedef {ReturnType<typeof openAccount>} Account */

/** @param {string} text */
function dataOf(text) {
  try {
    return JSON.parse(text).data;
  } catch {
    return undefined;
  }
}

/**
 * Creates a source that counts its runs.
 * @param {Account} account
 */
export async function createCounter({ call, must }) {
  const source = await must('POST', '/sources', { component_code: COUNTS });
  let last = 0;
  return {
    /** @type {string} */
    id: source.id,
    /**
     * Calls its endpoint. A run responds.
     * @returns {Promise<string | null>} the problem; null: the response is the next number
     */
    request: async () => {
      const response = await fetch(source.configured_props.http.endpoint_url);
      const text = await response.text();
      const expected = JSON.stringify({ count: last + 1 });
      last = response.status === 200 ? JSON.parse(text).count : last;
      if (response.status === 200 && text === expected) return null;
      const [run] = (await call('GET', `/sources/${source.id}/runs?limit=1`)).data ?? [];
      return `${response.status} ${text.trim().slice(0, 200)} instead of ${expected}; its last run: ${JSON.stringify(run)?.slice(0, 500)}`;
    },
    /** Ends the process of the account, so that what an attack has changed in it does not weaken the next attack. */
    endProcess: async () => {
      await (await fetch(`${source.configured_props.http.endpoint_url}?end=1`)).text();
    },
  };
}
