/** How long a request waits whose code is fetched, inspected and stored with its packages. No request waits longer. */
export const CODE_TIMEOUT_MS = 60_000;
