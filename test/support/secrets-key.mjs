/** The value of `SLUICE_SECRETS_KEY` of each local system: they use the same databases, one after the other. */
export const SECRETS_KEY = Buffer.alloc(32, 'sluice').toString('base64url');
