import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { request as requestTls } from 'node:https';
import { responseProblem } from './openapi.js';

export interface ApiResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  /** The body as JSON; undefined if it is not JSON. */
  body: any;
}

interface Outgoing {
  headers?: Record<string, string>;
  body?: string | Buffer;
  /** `false`: over a separate connection. */
  agent?: false;
}

/** One HTTP request, exactly as the test specifies it. A response of the REST API must match its description. */
export async function http(method: string, url: string, outgoing: Outgoing = {}): Promise<ApiResponse> {
  const response = await exchange(method, url, outgoing);
  const problem = responseProblem(method, url, response, outgoing.body);
  if (problem)
    throw new Error(
      `${method} ${url} returned ${response.status}, contrary to docs/openapi.yaml: ${problem}\n${response.text.slice(0, 1000)}`,
    );
  return response;
}

function exchange(method: string, url: string, { headers = {}, body, agent }: Outgoing): Promise<ApiResponse> {
  return new Promise((resolve, reject) => {
    const outgoing = (url.startsWith('https:') ? requestTls : request)(
      url,
      { method, agent, headers: { ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }), ...headers } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          let parsed: unknown;
          try {
            parsed = JSON.parse(text);
          } catch {
            parsed = undefined;
          }
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, body: parsed });
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** The e-mail address of a new account. */
export const newEmail = (): string => `${randomUUID()}@example.com`;

/** A client of the REST API with one account. */
export class Api {
  /** Paths of the sources and webhooks that this client has created. */
  private readonly created = new Set<string>();

  constructor(
    readonly baseUrl: string,
    readonly account: { id: string; email: string; api_key: string },
  ) {}

  send(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<ApiResponse> {
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    return this.raw(method, path, body === undefined ? undefined : JSON.stringify(body), { ...type, ...headers });
  }

  /** A request with exactly this body. */
  async raw(method: string, path: string, body: string | Buffer | undefined, headers: Record<string, string> = {}): Promise<ApiResponse> {
    const response = await http(method, `${this.baseUrl}${path}`, {
      headers: { authorization: `Bearer ${this.account.api_key}`, ...headers },
      body,
    });
    const collection = /^\/(sources|webhooks)\/?(\?|$)/.exec(path)?.[1];
    if (method === 'POST' && collection && response.status === 200 && response.body.data.id)
      this.created.add(`/${collection}/${response.body.data.id}`);
    return response;
  }

  /** Deletes the sources and webhooks that this client has created. */
  async removeAll(): Promise<void> {
    const paths = [...this.created];
    const removeNext = async (): Promise<void> => {
      for (let path = paths.pop(); path; path = paths.pop()) {
        await this.delete(path);
        this.created.delete(path);
      }
    };
    await Promise.all(Array.from({ length: 4 }, removeNext));
  }

  get = (path: string): Promise<ApiResponse> => this.send('GET', path);
  delete = (path: string, body?: object): Promise<ApiResponse> => this.send('DELETE', path, body);
  post = (path: string, body?: object): Promise<ApiResponse> => this.send('POST', path, body);
  patch = (path: string, body?: object): Promise<ApiResponse> => this.send('PATCH', path, body);
  put = (path: string, body?: object): Promise<ApiResponse> => this.send('PUT', path, body);

  /** Creates a component from this code; returns its id. */
  async component(code: string): Promise<string> {
    const response = await this.post('/components', { component_code: code });
    if (response.status !== 200) throw new Error(`no component: ${response.status} ${response.text}`);
    return response.body.data.id as string;
  }

  /** Creates a source from this code; throws if it is refused. */
  async source(code: string, body: object = {}): Promise<any> {
    const response = await this.post('/sources', { component_code: code, ...body });
    if (response.status !== 200) throw new Error(`no source: ${response.status} ${response.text}`);
    return response.body.data;
  }

  /** Creates a webhook with this URL; returns its id. */
  async webhook(url: string): Promise<string> {
    const response = await this.post(`/webhooks?url=${encodeURIComponent(url)}`);
    if (response.status !== 200) throw new Error(`no webhook: ${response.status} ${response.text}`);
    return response.body.data.id as string;
  }

  async subscribe(emitterId: string, listenerId: string, eventName?: string): Promise<void> {
    const query = new URLSearchParams({
      emitter_id: emitterId,
      listener_id: listenerId,
      ...(eventName === undefined ? {} : { event_name: eventName }),
    });
    const response = await this.post(`/subscriptions?${query.toString()}`);
    if (response.status !== 200) throw new Error(`no subscription: ${response.status} ${response.text}`);
  }
}
