// Receives webhooks that are signed with HMAC in any of the usual ways.
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';

const bytesOf = ({ bodyRaw, bodyBase64 }) => Buffer.from(bodyRaw, bodyBase64 ? 'base64' : 'utf8');
const isEqual = (a, b) => {
  const [left, right] = [Buffer.from(String(a ?? '')), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
};
// A captured request must not be repeated later
const isFresh = (timestamp, seconds) => Math.abs(Date.now() / 1000 - Number(timestamp)) <= seconds;

/** Whether the type can be the name of a stream. Other events go to the default stream. */
const isStream = (type) => /^(?!\$|\*$)[^\0]{1,128}$/s.test(type) && type.isWellFormed();

export default {
  key: 'hmac',
  name: 'Signed webhook',
  version: '1.0.0',
  description: 'Receives webhooks of any sender that signs the body with HMAC; what exactly is signed can be configured.',
  type: 'source',
  dedupe: 'unique',
  props: {
    http: { type: '$.interface.http', customResponse: true, respondWhenStored: true },
    secret: { type: 'string', label: 'Secret', secret: true, description: 'The secret that the sender signs with.' },
    header: { type: 'string', label: 'Header', description: 'The header with the signature, for example x-signature.' },
    prefix: {
      type: 'string',
      label: 'Prefix',
      description: 'Text before the signature, for example sha256=.',
      optional: true,
      default: '',
    },
    algorithm: { type: 'string', label: 'Algorithm', options: ['sha1', 'sha256', 'sha384', 'sha512'], optional: true, default: 'sha256' },
    encoding: { type: 'string', label: 'Encoding', options: ['hex', 'base64', 'base64url'], optional: true, default: 'hex' },
    signed: {
      type: 'string',
      label: 'Signed text',
      description: 'What is signed: {body}, {timestamp} and {id} are replaced, for example {timestamp}.{body}.',
      optional: true,
      default: '{body}',
    },
    timestampHeader: {
      type: 'string',
      label: 'Timestamp header',
      description: 'The header with the time in Unix seconds; it must be part of the signed text.',
      optional: true,
    },
    toleranceSeconds: { type: 'integer', label: 'Tolerance in seconds', min: 1, optional: true, default: 300 },
    idHeader: {
      type: 'string',
      label: 'Id header',
      description: 'The header with the id of the event; repeated ids are dropped.',
      optional: true,
    },
    typeHeader: { type: 'string', label: 'Type header', description: 'The header with the type of the event.', optional: true },
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
    const header = (name) => (name ? request.headers[name.toLowerCase()] : undefined);
    const [timestamp, id] = [header(this.timestampHeader), header(this.idHeader)];
    const values = { '{body}': bytesOf(request), '{timestamp}': timestamp ?? '', '{id}': id ?? '' };
    const hmac = createHmac(this.algorithm, this.secret);
    for (const part of this.signed.split(/(\{(?:body|timestamp|id)\})/)) hmac.update(values[part] ?? part);
    if (!isEqual(header(this.header), this.prefix + hmac.digest(this.encoding))) return this.refuse('the signature does not match');
    if (this.timestampHeader && !isFresh(timestamp, this.toleranceSeconds)) return this.refuse('the timestamp is too old');
    this.receive({ id: id ?? randomUUID(), type: header(this.typeHeader) ?? 'unknown', payload: request.body });
  },
};
