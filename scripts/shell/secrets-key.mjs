import { randomBytes } from 'node:crypto';

/** A new value of `SLUICE_SECRETS_KEY`. */
export const newSecretsKey = () => randomBytes(32).toString('base64url');
