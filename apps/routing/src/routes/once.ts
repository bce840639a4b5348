/** Calls `ask` when its result is needed for the first time, and again after a failure. */
export function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asking: Promise<T> | undefined;
  return () =>
    (asking ??= ask().catch((error: unknown) => {
      asking = undefined;
      throw error;
    }));
}
