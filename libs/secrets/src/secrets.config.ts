import { BadValue, Config, variable } from '#config';
import { SecretBox } from './secret-box.js';

const KEY_BYTES = 32;

/** For the services that store secrets or use them. */
export class SecretsConfig extends Config({
  keys: variable('SLUICE_SECRETS_KEY', {
    secret: true,
    description:
      "Encrypts webhooks' signing secrets, props and credentials: 32 random bytes as base64, base64url or hex. A comma-separated list: the first key " +
      'encrypts, all of them decrypt. It also signs deletions of events. `sluice secrets rotate` encrypts everything under the first key.',
    parse: (text) =>
      text.split(',').map((part) => {
        const key = keyOf(part.trim());
        if (key === undefined)
          throw new BadValue(`must be ${KEY_BYTES} bytes as base64, base64url or hex, or a comma-separated list of such keys`);
        return key;
      }),
  }),
}) {
  get box(): SecretBox {
    return new SecretBox(this.keys);
  }
}

function keyOf(text: string): Buffer | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex');
  // the decoder takes both alphabets, and skips what is in neither
  return /^[\w+/-]{43}=?$/.test(text) ? Buffer.from(text, 'base64') : undefined;
}
