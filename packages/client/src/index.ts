export { SluiceError, UnreachableError } from './errors.js';
export type * from './generated/types.gen.js';
export type { EventsOptions } from './live-events.js';
export { retryingFetch, type RetryOptions } from './retrying-fetch.js';
export { type PublishOptions, SluiceClient, type SluiceOptions } from './sluice-client.js';
export { verifyWebhook, type VerifyOptions, WebhookVerificationError } from './verify-webhook.js';
