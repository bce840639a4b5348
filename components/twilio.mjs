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
      description: 'The URL as it is configured in Twilio, with its query; default: the endpoint of this source.',
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
  },
  run(request) {
    if (!this.authToken?.trim()) return this.refuse('no secret is configured');
    const { path, query, headers, body } = request;
    const search = stringify(query);
    const url = this.url ?? this.http.endpoint + (path === '/' ? '' : path) + (search ? `?${search}` : '');
    const isJson = typeof query.bodySHA256 === 'string';
    const expected = createHmac('sha1', this.authToken)
      .update(signedText(url, body, isJson))
      .digest('base64');
    if (!isEqual(headers['x-twilio-signature'], expected)) return this.refuse('the signature does not match');
    if (isJson && !isEqual(query.bodySHA256, createHash('sha256').update(bytesOf(request)).digest('hex')))
      return this.refuse('the body is not the one that was signed');
    const id = headers['i-twilio-idempotency-token'] ?? expected;
    const type = body?.MessageStatus ?? body?.CallStatus ?? body?.EventType ?? 'unknown';
    // No instructions: Twilio does nothing more
    this.receive({ id, type, payload: body }, { status: 200, headers: { 'content-type': 'text/xml' }, body: '<Response/>' });
  },
};
