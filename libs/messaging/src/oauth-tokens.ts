interface Client {
  tokenUrl: string;
  clientId: string;
  clientSecret: string;
  scope?: string;
}

/** A token is replaced this long before it expires. */
const MARGIN_MS = 30_000;
const TIMEOUT_MS = 10_000;
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
    const response = await fetch(tokenUrl, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams({ grant_type: 'client_credentials', ...(scope === undefined ? {} : { scope }) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const body = (await response.json().catch(() => ({}))) as { access_token?: unknown; expires_in?: unknown; error?: unknown };
    if (!response.ok || typeof body.access_token !== 'string')
      throw new Error(
        `${new URL(tokenUrl).host} issued no token: ${response.status} ${typeof body.error === 'string' ? body.error : ''}`.trim(),
      );
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
