import kafkajs from 'kafkajs';

interface Client {
  tokenUrl: string;
  clientId: string;
  clientSecret: string;
  scope?: string;
}

/** A token is replaced this long before it expires. */
const MARGIN_MS = 30_000;
const TIMEOUT_MS = 10_000;
/** The statuses after which a person must act. After others, and without a response, the next attempt may succeed, as with a broker that is down. */
const REFUSALS = new Set([400, 401, 403, 404]);
/** The assumed lifetime of a token whose issuer does not state one. */
const DEFAULT_LIFETIME_S = 300;

/**
 * Access tokens by the client credentials grant (RFC 6749, section 4.4). A token is reused until shortly before it expires, and concurrent
 * connections share one request.
 */
export function oauthTokens({ tokenUrl, clientId, clientSecret, scope }: Client): () => Promise<{ value: string }> {
  let current: { value: string; validUntil: number } | undefined;
  let pending: Promise<{ value: string; validUntil: number }> | undefined;

  async function request(): Promise<{ value: string; validUntil: number }> {
    const { host } = new URL(tokenUrl);
    const response = await fetch(tokenUrl, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams({ grant_type: 'client_credentials', ...(scope === undefined ? {} : { scope }) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch((error: Error) => {
      throw new kafkajs.KafkaJSConnectionError(`${host} does not respond: ${(error.cause instanceof Error ? error.cause : error).message}`);
    });
    if (!response.ok && !REFUSALS.has(response.status)) throw new kafkajs.KafkaJSConnectionError(`${host} responds ${response.status}`);
    const body = (await response.json().catch(() => ({}))) as { access_token?: unknown; expires_in?: unknown; error?: unknown };
    if (!response.ok || typeof body.access_token !== 'string')
      throw new Error(`${host} issued no token: ${response.status} ${typeof body.error === 'string' ? body.error : ''}`.trim());
    const lifetime = typeof body.expires_in === 'number' ? body.expires_in : DEFAULT_LIFETIME_S;
    return { value: body.access_token, validUntil: Date.now() + lifetime * 1000 - MARGIN_MS };
  }

  return async () => {
    if (current && Date.now() < current.validUntil) return { value: current.value };
    pending ??= request().finally(() => (pending = undefined));
    current = await pending;
    return { value: current.value };
  };
}
