// Receives webhooks of every sender that follows Standard Webhooks.
import { createHmac, timingSafeEqual } from 'node:crypto';

const bytesOf = ({ bodyRaw, bodyBase64 }) => Buffer.from(bodyRaw, bodyBase64 ? 'base64' : 'utf8');
const isEqual = (a, b) => {
  const [left, right] = [Buffer.from(String(a ?? '')), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
};
// A captured request must not be repeated later
const toleranceSeconds = 300;
const isFresh = (timestamp) => Math.abs(Date.now() / 1000 - Number(timestamp)) <= toleranceSeconds;

/** The key in a secret; null if it is not base64, because decoding that would make a short or even an empty key, which anyone can sign with. */
const keyOf = (secret) => {
  const text = secret.trim().replace(/^whsec_/, '');
  const key = Buffer.from(text, 'base64');
  return key.length > 0 && /^[\w+/-]+={0,2}$/.test(text) ? key : null;
};

/** Whether the type can be the name of a stream. Other events go to the default stream. */
const isStream = (type) => /^(?!\$|\*$)[^\0]{1,128}$/s.test(type) && type.isWellFormed();

export default {
  key: 'standard-webhooks',
  name: 'Standard Webhooks',
  version: '1.0.0',
  description: 'Receives webhooks that are signed as www.standardwebhooks.com describes; those of Sluice are, too.',
  type: 'source',
  dedupe: 'unique',
  props: {
    http: { type: '$.interface.http', customResponse: true, respondWhenStored: true },
    secret: { type: 'string', label: 'Secret', secret: true, description: 'The secret of the sender, with or without whsec_ before it.' },
    streams: {
      type: 'boolean',
      label: 'A stream per type',
      description: 'Emit each type of event on a separate stream, named after the type, if it can be the name of a stream.',
      optional: true,
      default: false,
    },
  },
  methods: {
    refuse(reason) {
      this.http.respond({ status: 401, body: { error: reason } });
    },
    receive({ id, type, payload }, response = { status: 200, body: { received: true } }) {
      this.$emit({ id, type, payload }, { id, summary: type, ...(this.streams && isStream(type) && { name: type }) });
      this.http.respond(response);
    },
  },
  run(request) {
    if (!this.secret?.trim()) return this.refuse('no secret is configured');
    const key = keyOf(this.secret);
    if (!key) return this.refuse('the configured secret is not base64');
    const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = request.headers;
    const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(bytesOf(request)).digest('base64');
    // While a secret is being replaced, there is a signature for each
    if (!signatures.split(' ').some((signature) => isEqual(signature, `v1,${expected}`)))
      return this.refuse('the signature does not match');
    if (!isFresh(timestamp)) return this.refuse('the timestamp is too old');
    this.receive({ id: id ?? expected, type: String(request.body?.type ?? 'unknown'), payload: request.body });
  },
};
