// Receives webhooks of Twilio.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { stringify } from 'node:querystring';

const bytesOf = ({ bodyRaw, bodyBase64 }) => Buffer.from(bodyRaw, bodyBase64 ? 'base64' : 'utf8');
const isEqual = (a, b) => {
  const [left, right] = [Buffer.from(String(a ?? '')), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
};

/** Form fields are part of the signed text, sorted by name; a JSON body is there by its checksum in the URL. */
const signedText = (url, body, isJson) =>
  isJson
    ? url
    : Object.entries(body ?? {})
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .reduce(
          (text, [name, value]) =>
            text +
            [...new Set([value].flat())]
              .sort()
              .map((each) => name + each)
              .join(''),
          url,
        );

/** Twilio signs some URLs without their port and others with the default one: its libraries try both. */
const portVariants = (url) => {
  const [, scheme, host, port = scheme === 'https' ? ':443' : ':80', rest] =
    /^(https?):\/\/((?:[^/?@]*@)?(?:\[[^\]]*\]|[^/?:]*))(:\d+)?(.*)$/s.exec(url) ?? [];
  return host === undefined ? [url] : [`${scheme}://${host}${rest}`, `${scheme}://${host}${port}${rest}`];
};

export default {
  key: 'twilio',
  name: 'Twilio',
  version: '1.0.0',
  description: 'Receives the webhooks of Twilio (messages, calls, their status), and verifies their signatures.',
  type: 'source',
  dedupe: 'unique',
  props: {
    http: { type: '$.interface.http', customResponse: true, respondWhenStored: true },
    authToken: { type: 'string', label: 'Auth token', secret: true, description: 'The auth token of the account in Twilio.' },
    url: {
      type: 'string',
      label: 'URL',
      description:
        'The URL as it is configured in Twilio, with its query, if it is not the endpoint of this source, for example behind a proxy.',
      optional: true,
    },
    streams: {
      type: 'boolean',
      label: 'A stream per type',
      description: 'Emit each type of event on a separate stream, named after the type.',
      optional: true,
      default: false,
    },
  },
  methods: {
    refuse(reason) {
      this.http.respond({ status: 401, body: { error: reason } });
    },
    receive({ id, type, payload }, response = { status: 200, body: { received: true } }) {
      this.$emit({ id, type, payload }, { id, summary: type, ...(this.streams && { name: type }) });
      this.http.respond(response);
    },
    /** The URLs that Twilio may have requested, as it writes them. */
    signedUrls({ method, path, query, rawQuery }) {
      const search = stringify(query);
      const queries = [...new Set([rawQuery ?? search, search])].map((text) => text && `?${text}`);
      if (!this.url) {
        const endpoint = this.http.endpoint.replace(/\/$/, '');
        const paths = path === '/' ? ['', '/'] : [path];
        return paths.flatMap((each) => queries.map((text) => endpoint + each + text));
      }
      // A fragment contains settings for Twilio, which it neither sends nor signs
      const [configured] = this.url.split('#', 1);
      const [withoutQuery, configuredQuery] = configured.split('?', 2);
      const requested = queries.map((text) => withoutQuery + text);
      // With GET, the query is the payload and must be what was signed
      if (method !== 'POST') return requested;
      if (!query.bodySHA256) return [configured, ...requested];
      return [`${configured}${configuredQuery === undefined ? '?' : '&'}bodySHA256=${query.bodySHA256}`, ...requested];
    },
  },
  run(request) {
    if (!this.authToken?.trim()) return this.refuse('no secret is configured');
    const { method, query, headers, body } = request;
    const isJson = typeof query.bodySHA256 === 'string';
    const signature = headers['x-twilio-signature'];
    const isSigned = this.signedUrls(request)
      .flatMap(portVariants)
      .some((url) =>
        isEqual(
          signature,
          createHmac('sha1', this.authToken)
            .update(signedText(url, body, isJson))
            .digest('base64'),
        ),
      );
    if (!isSigned) return this.refuse('the signature does not match');
    if (isJson && !isEqual(query.bodySHA256, createHash('sha256').update(bytesOf(request)).digest('hex')))
      return this.refuse('the body is not the one that was signed');
    const payload = method === 'GET' ? query : body;
    const id = headers['i-twilio-idempotency-token'] ?? signature;
    const type = payload?.MessageStatus ?? payload?.SmsStatus ?? payload?.CallStatus ?? payload?.EventType ?? 'unknown';
    // No instructions: Twilio does nothing more
    this.receive({ id, type, payload }, { status: 200, headers: { 'content-type': 'text/xml' }, body: '<Response/>' });
  },
};
